/** A collector of traces that takes everything; GET /count returns the number of batches. */
import { createServer } from 'node:http';
import { listen } from '../listen.ts';

let count = 0;
const server = createServer((request, response) => {
  if (request.method === 'POST') count += 1;
  request.resume();
  request.on('end', () => response.end(request.method === 'GET' ? String(count) : ''));
});
listen(server);
