/**
 * The baseline of the worker: what a user would write in an afternoon with BullMQ and got. No records, counters, guard
 * or holding.
 */
import { createHmac } from 'node:crypto';
import { Agent } from 'node:http';
import { Worker } from 'bullmq';
import got from 'got';
import { Redis } from 'ioredis';

const connection = new Redis(process.env.REDIS_URL!, { maxRetriesPerRequest: null });
const agent = { http: new Agent({ keepAlive: true }) };
const delaysMs = [60_000, 300_000, 1_800_000, 7_200_000, 43_200_000];

const worker = new Worker(
  'plain',
  async (job) => {
    const { url, secret, event } = job.data;
    const body = JSON.stringify(event);
    const t = Math.floor(Date.now() / 1000);
    const v1 = createHmac('sha256', secret).update(`${t}.${body}`).digest('hex');
    await got.post(url, {
      body,
      headers: {
        'content-type': 'application/json',
        'service-signature': `t=${t},v1=${v1}`,
        'service-event': event.type,
        'service-event-id': event.id,
        'service-delivery-id': job.id,
      },
      timeout: { request: 8_000 },
      retry: { limit: 0 },
      followRedirect: false,
      agent,
    });
  },
  {
    connection,
    concurrency: 100,
    removeOnComplete: { count: 0 },
    settings: { backoffStrategy: (attemptsMade) => delaysMs[attemptsMade - 1] ?? -1 },
  },
);
await worker.waitUntilReady();
process.stdout.write(`${JSON.stringify({ msg: 'ready', url: '' })}\n`);
process.on('SIGTERM', () => void worker.close().then(() => process.exit(0)));
process.on('disconnect', () => process.exit(0));
