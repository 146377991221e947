/**
 * A network between the apps and the Redis of `REDIS_URL`: whatever one side sends reaches the other one `DELAY_MS`
 * later, however much is on its way.
 */
import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../listen.ts';

const { REDIS_URL, DELAY_MS } = process.env as Record<string, string>;
const { hostname, port } = new URL(String(REDIS_URL));

function pass(from: Socket, to: Socket): void {
  const later = (then: () => void) => setTimeout(then, Number(DELAY_MS));
  from.setNoDelay(true);
  from.on('data', (data) => later(() => to.write(data)));
  from.on('error', () => undefined);
  from.on('close', () => later(() => to.destroy()));
}

const server = createServer((app) => {
  const redis = connect(Number(port), hostname);
  pass(app, redis);
  pass(redis, app);
});
listen(server);
