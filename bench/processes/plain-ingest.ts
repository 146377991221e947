/**
 * The baseline of ingest: express, one zod schema, one job per event. No matching, records, idempotence or repeatable
 * fan-out. With `RECEIVER_URL` an event is for that receiver; events of the type `session.created` get `FAN_OUT` jobs.
 */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Queue } from 'bullmq';
import express from 'express';
import { Redis } from 'ioredis';
import { z } from 'zod';

const { RECEIVER_URL = 'http://127.0.0.1:9', FAN_OUT = '0' } = process.env as Record<string, string>;
const queue = new Queue('plain', { connection: new Redis(process.env.REDIS_URL!, { maxRetriesPerRequest: null }) });
const schema = z.object({
  type: z.string(),
  environment: z.enum(['sandbox', 'production']),
  data: z.looseObject({ id: z.string(), status: z.string() }),
});
const app = express();
app.post('/v1/events', express.json(), async (request, response) => {
  const parsed = schema.parse(request.body);
  const event = {
    id: `evt_${randomUUID()}`,
    type: parsed.type,
    created_at: new Date().toISOString(),
    environment: parsed.environment,
    data: parsed.data,
  };
  const jobTo = (i: number) => ({
    name: 'delivery',
    data: { url: `${RECEIVER_URL}/${i}`, secret: 'whsec_bench', event },
    opts: { attempts: 6, backoff: { type: 'custom' } },
  });
  if (Number(FAN_OUT) > 0 && event.type === 'session.created') {
    await queue.addBulk(Array.from({ length: Number(FAN_OUT) }, (_, i) => jobTo(i)));
  } else {
    const { name, data, opts } = jobTo(0);
    await queue.add(name, data, opts);
  }
  response.status(202).json({ id: event.id });
});
const server = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.stdout.write(`${JSON.stringify({ msg: 'ready', url })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
process.on('disconnect', () => process.exit(0));
