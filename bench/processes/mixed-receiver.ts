/**
 * A receiver whose paths respond fast (`/good…`), after 900 ms (`/slow…`), with an error (`/dead…`), never (`/hang…`),
 * or fast until `GET /turn` and never after it (`/turn…`). It reports what arrived at the good paths, when, and how old
 * it was, and the maximum number of concurrent requests.
 */
import { createServer } from 'node:http';
import { listen } from '../listen.ts';

let arrivals: { path: string; atMs: number; ageMs: number }[] = [];
let hasTurned = false;
let inFlight = 0;
let mostInFlight = 0;
const server = createServer((request, response) => {
  const path = request.url ?? '';
  if (request.method === 'GET' && path === '/turn') {
    hasTurned = true;
    response.end();
    return;
  }
  if (request.method === 'GET' && path === '/most-in-flight') {
    response.end(JSON.stringify(mostInFlight));
    return;
  }
  if (request.method === 'GET') {
    response.end(JSON.stringify(arrivals));
    arrivals = [];
    return;
  }
  inFlight += 1;
  mostInFlight = Math.max(mostInFlight, inFlight);
  response.once('close', () => {
    inFlight -= 1;
  });
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const isDelivery = request.headers['service-delivery-id'] !== undefined;
    if (!isDelivery || path.startsWith('/good') || (path.startsWith('/turn') && !hasTurned)) {
      response.end();
      const sentAt = /"sent_at":(\d+)/.exec(Buffer.concat(chunks).toString())?.[1];
      const atMs = Date.now();
      if (sentAt !== undefined && path.startsWith('/good')) arrivals.push({ path, atMs, ageMs: atMs - Number(sentAt) });
    } else if (path.startsWith('/slow')) setTimeout(() => response.end(), 900);
    else if (path.startsWith('/dead')) response.writeHead(503).end();
  });
});
listen(server, process.env.HOST);
