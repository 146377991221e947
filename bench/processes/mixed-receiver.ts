/** A receiver whose paths answer soon (`/good…`), after 900 ms (`/slow…`), with an error (`/dead…`) or never (`/hang…`), and which knows how old what arrives at the good ones is. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let agesMs: number[] = [];
const server = createServer((request, response) => {
  const path = request.url ?? '';
  if (request.method === 'GET') {
    response.end(JSON.stringify(agesMs));
    agesMs = [];
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const isDelivery = request.headers['service-delivery-id'] !== undefined;
    if (!isDelivery || path.startsWith('/good')) {
      response.end();
      const sentAt = /"sent_at":(\d+)/.exec(Buffer.concat(chunks).toString())?.[1];
      if (sentAt !== undefined) agesMs.push(Date.now() - Number(sentAt));
    } else if (path.startsWith('/slow')) setTimeout(() => response.end(), 900);
    else if (path.startsWith('/dead')) response.writeHead(503).end();
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ msg: 'ready', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
});
process.on('SIGTERM', () => process.exit(0));
