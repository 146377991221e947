/** A receiver that returns 200 at once; GET /count returns the number of deliveries. */
import { createServer } from 'node:http';
import { listen } from '../listen.ts';

let count = 0;
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(String(count));
    return;
  }
  if (request.headers['service-signature'] !== undefined) count += 1;
  request.resume();
  request.on('end', () => response.end('ok'));
});
listen(server);
