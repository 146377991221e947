/**
 * `npm run pictures`: makes the pictures of the documents, `docs/images`, from a running Posthorn with some customers.
 */
import { join } from 'node:path';
import { DAY_MS, durationBucket, MINUTE_MS } from '@posthorn/core';
import { addCounts, openStore } from '@posthorn/store';
import { eventually, isDelivery, startNameServer, startReceiver } from '@posthorn/testing';
import { launchBrowser, openVisit, WIDTHS } from '../browser/browser.ts';
import prepare from '../setup/prepare-browser.ts';
import stopRedis from '../setup/stop-redis.ts';
import { sampleEvent, startWorld, type World } from '../world.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');

/** Counts of the last hour, as if the customers had received events all the time. */
async function addHistory({ env, prefix }: World): Promise<void> {
  const { store, start, stop } = openStore(
    { REDIS_URL: String(env.REDIS_URL), KEY_PREFIX: prefix, PARTITIONS: 1, RETENTION: DAY_MS },
    { onError: () => undefined },
  );
  await start();
  const nowMs = Date.now();
  for (let minute = 1; minute < 60; minute++) {
    const attempts = Math.round(60 + 25 * Math.sin(minute / 7) + (minute % 5) * 3);
    const failed = minute < 6 ? Math.round(attempts / 8) : minute % 9 === 0 ? 2 : 0;
    await addCounts(
      store,
      {
        succeeded: attempts - failed,
        failed,
        attemptBuckets: new Map([40, 55, 90, 240].map((ms, i) => [durationBucket(ms), [40, 30, 25, 5][i] ?? 0])),
        arrivalBuckets: new Map([60, 80, 130, 300].map((ms, i) => [durationBucket(ms), [40, 30, 25, 5][i] ?? 0])),
        addresses: new Map(),
      },
      nowMs - minute * MINUTE_MS,
    );
  }
  await stop();
}

/** Customers with deliveries. Returns a delivery that has failed twice and waits. */
async function addCustomers(on: World, good: string, bad: string): Promise<string> {
  const at = (name: string, url: string) => url.replace('127.0.0.1', name);
  await on.subscribe(at('hooks.acme.example', good), { description: 'Acme Bank, onboarding' });
  await on.subscribe(at('kyc.northwind.example', good), { description: 'Northwind' });
  const zebra = await on.subscribe(at('api.zebra.example', bad), { description: 'Zebra GmbH, contract 4711' });
  const paused = await on.subscribe(at('events.contoso.example', good), { description: 'Contoso' });
  await on.operate('POST', `/v1/subscriptions/${paused.id}/pause`);
  const data = { id: 'ses_8f1c2', status: 'approved', reference: 'customer-20481', score: 0.97, documents: 2 };
  await on.publishBatch(Array.from({ length: 40 }, () => sampleEvent({ environment: 'production', data })));
  return await eventually('a delivery that waits', async () => {
    const found = await on.deliveries(`subscription_id=${zebra.id}&status=waiting_for_retry`);
    return (
      found.length >= 40 && found.every((one: { attempt_count: number }) => one.attempt_count === 2) && found[0].id
    );
  });
}

await prepare();
const names = await startNameServer((_name, family) => (family === 4 ? ['127.0.0.1'] : []));
const good = await startReceiver();
const seen = new Set<unknown>();
const bad = await startReceiver((request, response) => {
  if (!isDelivery(request)) return void response.end();
  const event = request.headers['service-event-id'];
  const [status, body] = seen.has(event)
    ? ([500, '{"error":"database is read-only"}'] as const)
    : ([502, 'upstream unavailable'] as const);
  seen.add(event);
  response.writeHead(status, { 'content-type': 'application/json', server: 'nginx' }).end(body);
});
const on = await startWorld({ env: { DNS_SERVERS: names.address, RETRY_DELAYS: '5ms,5m,30m,2h,12h' } });
const browser = await launchBrowser();
try {
  await addHistory(on);
  const deliveryId = await addCustomers(on, good.url, bad.url);
  const { page, signIn } = await openVisit(browser, on.consoleUrl);
  /** Takes a picture of the whole page, in a window that is high enough for it. */
  const take = async (name: string) => {
    await page.setViewportSize({ ...WIDTHS.wide, height: Number(await page.evaluate('document.body.scrollHeight')) });
    await page.screenshot({ path: join(IMAGES, `${name}.png`) });
    await page.setViewportSize(WIDTHS.wide);
  };
  await page.goto('/sign-in');
  await signIn();
  await page.getByText('Zebra GmbH').first().waitFor();
  await eventually('everything to be loaded', async () => (await page.getByLabel('Loading').count()) === 0);
  await take('overview');
  await page.goto(`/deliveries/${deliveryId}`);
  await page.getByRole('region', { name: 'body', exact: true }).waitFor();
  await take('delivery');
  console.log(`Made overview.png and delivery.png in ${IMAGES}. Look at them.`);
} finally {
  await browser.close();
  await on.stop();
  await Promise.all([good.close(), bad.close(), names.close()]);
  await stopRedis();
}
