/** A receiver whose paths answer soon (`/good…`), after 900 ms (`/slow…`), with an error (`/dead…`) or never (`/hang…`), and which tells what arrived at the good ones, when, and how old it was. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let arrivals: { path: string; atMs: number; ageMs: number }[] = [];
const server = createServer((request, response) => {
  const path = request.url ?? '';
  if (request.method === 'GET') {
    response.end(JSON.stringify(arrivals));
    arrivals = [];
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const isDelivery = request.headers['service-delivery-id'] !== undefined;
    if (!isDelivery || path.startsWith('/good')) {
      response.end();
      const sentAt = /"sent_at":(\d+)/.exec(Buffer.concat(chunks).toString())?.[1];
      const atMs = Date.now();
      if (sentAt !== undefined) arrivals.push({ path, atMs, ageMs: atMs - Number(sentAt) });
    } else if (path.startsWith('/slow')) setTimeout(() => response.end(), 900);
    else if (path.startsWith('/dead')) response.writeHead(503).end();
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ msg: 'ready', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
});
process.on('SIGTERM', () => process.exit(0));
