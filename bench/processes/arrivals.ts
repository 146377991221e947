/**
 * A receiver for any system. It responds after `DELAY_MS` (default: at once), finds the id of the event in the request,
 * and notes when it arrived, unless the caller is gone before the response. `PATTERN`: a regular expression whose first
 * group is the id, in the body or, with `HEADER`, in that header. GET /arrivals returns what has arrived since the last
 * such call; GET /count returns how many there are. After GET /hang-from/18 it no longer responds to deliveries to the
 * paths `/18`, `/19` and so on.
 */
import { createServer } from 'node:http';
import { listen } from '../listen.ts';

const { PATTERN, HEADER, HOST, PORT = '0', STATUS = '200', DELAY_MS } = process.env as Record<string, string>;
const pattern = new RegExp(PATTERN ?? '$^');
let hangFrom = Number.POSITIVE_INFINITY;
let arrivals: { id: string; atMs: number }[] = [];
const server = createServer((request, response) => {
  const atMs = performance.timeOrigin + performance.now();
  const path = request.url ?? '';
  if (request.method === 'GET' && path.startsWith('/hang-from/')) {
    hangFrom = Number(path.slice('/hang-from/'.length));
    response.end();
    return;
  }
  if (request.method === 'GET') {
    response.end(JSON.stringify(path === '/count' ? arrivals.length : arrivals));
    if (path !== '/count') arrivals = [];
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  const respond = () => {
    if (response.destroyed) return;
    const text = HEADER ? String(request.headers[HEADER.toLowerCase()] ?? '') : Buffer.concat(chunks).toString();
    // A call without an id is no delivery: a validation, or a test of the system.
    const id = pattern.exec(text)?.[1];
    if (id !== undefined && Number(path.slice(1)) >= hangFrom) return;
    response.writeHead(Number(STATUS)).end();
    if (id !== undefined) arrivals.push({ id, atMs });
  };
  request.on('end', () => {
    if (DELAY_MS === undefined) respond();
    else setTimeout(respond, Number(DELAY_MS));
  });
});
listen(server, HOST, Number(PORT));
