/** A collector of traces that takes everything; GET /count returns the number of batches. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let count = 0;
const server = createServer((request, response) => {
  if (request.method === 'POST') count += 1;
  request.resume();
  request.on('end', () => response.end(request.method === 'GET' ? String(count) : ''));
});
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.stdout.write(`${JSON.stringify({ msg: 'ready', url })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
process.on('disconnect', () => process.exit(0));
