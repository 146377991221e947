/** The quota of a publisher: how much it may have stored in Redis before it, and only it, is refused. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS } from '@posthorn/core';
import { fakeClock } from '@posthorn/testing';
import { loadIngestSettings } from '../apps/ingest/src/config.ts';
import { ownWorld } from './own.ts';
import { PUBLISHER_KEY, sampleEvent, type World } from './world.ts';

const large = (bytes = 100_000) => sampleEvent({ data: { id: 's-1', status: 'approved', pad: 'x'.repeat(bytes) } });
const sandboxKey = `${PUBLISHER_KEY}-sandbox`;

/** Publishes until the publisher is refused; returns that response. */
async function untilRefused(on: World, key: string) {
  for (let published = 0; published < 100; published++) {
    const answer = await on.publish(large(), key);
    if (answer.status !== 202) return answer;
  }
  throw new Error('10 MB were accepted');
}

describe('PUBLISHER_QUOTA', () => {
  it('refuses the publisher that has used it up, with a clear message, and nobody else', async () => {
    const on = await ownWorld({ workers: 0, env: { PUBLISHER_QUOTA: '2mb' } });
    const refused = await untilRefused(on, sandboxKey);
    expect(refused).toMatchObject({ status: 429, body: { code: 'quota_exceeded' } });
    expect(refused.body.detail).toMatch(
      /^sandbox-only has about 2\.\d MB stored in Redis; its quota is 2\.0 MB \(PUBLISHER_QUOTA\)/,
    );
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await on.publish(large())).toMatchObject({ status: 202 });
  });

  it('counts what a publisher has stored with each of its keys, so that replacing one does not begin anew', async () => {
    const newKey = `${PUBLISHER_KEY}-new`;
    const PUBLISHER_KEYS = `billing:both:${PUBLISHER_KEY},billing:both:${newKey}`;
    const on = await ownWorld({ workers: 0, ingests: 1, env: { PUBLISHER_QUOTA: '2mb', PUBLISHER_KEYS } });
    expect(await on.publish(large(), newKey)).toMatchObject({ status: 202 });
    await untilRefused(on, PUBLISHER_KEY);
    expect(await on.publish(large(), newKey)).toMatchObject({ status: 429, body: { code: 'quota_exceeded' } });
  });

  it('counts what all processes have accepted, also stopped ones, until the retention ends', async () => {
    const clock = fakeClock(Date.now());
    const env = { PUBLISHER_QUOTA: '2mb', RETENTION: '30d' };
    const first = await ownWorld({ workers: 0, env, clock });
    await untilRefused(first, sandboxKey);
    await first.stopIngest(0);
    const again = () => ownWorld({ workers: 0, env: { ...env, KEY_PREFIX: first.prefix }, clock });
    expect(await (await again()).publish(large(), sandboxKey)).toMatchObject({ status: 429 });
    clock.advance(32 * DAY_MS);
    expect(await (await again()).publish(large(), sandboxKey)).toMatchObject({ status: 202 });
  });

  it('counts events that are stored although their publisher got an error', async () => {
    // There is no replica.
    const on = await ownWorld({ workers: 0, ingests: 1, env: { PUBLISHER_QUOTA: '1mb', ACK_REPLICAS: '1' } });
    const stored = await Promise.all(Array.from({ length: 15 }, () => on.publish(large())));
    expect(new Set(stored.map(({ status }) => status))).toEqual(new Set([503]));
    expect(await on.publish(large())).toMatchObject({ status: 429, body: { code: 'quota_exceeded' } });
  });

  it('counts events whose first reply was lost: they are stored already, since the same call', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ workers: 0, ingests: 1, env: { PUBLISHER_QUOTA: '1mb' }, clock });
    const other = await ownWorld({ workers: 0, ingests: 1, env: { KEY_PREFIX: on.prefix }, clock });
    const events = Array.from({ length: 15 }, (_, i) => ({ ...large(), id: `evt:${i}` }));
    // What Redis has done of a call that it gets twice.
    for (const event of events) expect(await other.publish(event)).toMatchObject({ status: 202 });
    await on.redis.del(`${on.prefix}:stored:tests`);
    const statuses = new Set<number>();
    for (const event of events) statuses.add((await on.publish(event)).status);
    expect([...statuses]).toEqual([200, 429]);
  });

  it('refuses those events of a batch that exceed it, and says when to repeat them', async () => {
    const on = await ownWorld({ workers: 0, env: { PUBLISHER_QUOTA: '1mb' } });
    const { status, headers, body } = await on.publishBatch(Array.from({ length: 300 }, () => large(15_000)));
    expect(status).toBe(200);
    expect(headers.get('retry-after')).toBe('60');
    const statuses = new Set(body.results.map((result: { status: number }) => result.status));
    expect([...statuses].sort()).toEqual([202, 429]);
  });

  it('is half of the memory of Redis by default, or a size, a percentage, or off with 0', () => {
    const read = (PUBLISHER_QUOTA?: string) =>
      loadIngestSettings({ PUBLISHER_KEYS: `a:both:${PUBLISHER_KEY}`, ...(PUBLISHER_QUOTA && { PUBLISHER_QUOTA }) })
        .PUBLISHER_QUOTA;
    expect(read()).toEqual({ share: 0.5 });
    expect(read('80%')).toEqual({ share: 0.8 });
    expect(read('1.5gb')).toEqual({ bytes: 1.5 * 1024 ** 3 });
    expect(read('0')).toBeNull();
    for (const bad of ['101%', '0%', '5', '-1gb', '0mb']) expect(() => read(bad)).toThrow(/PUBLISHER_QUOTA: must be 0/);
  });

  it('is taken, as a percentage, of the memory that Redis may use', async () => {
    // A hundred-millionth of a percent of some gigabytes is less than one event.
    const on = await ownWorld({ workers: 0, env: { PUBLISHER_QUOTA: '0.00000001%' } });
    expect(await on.publish(sampleEvent(), sandboxKey)).toMatchObject({ status: 202 });
    expect(await on.publish(sampleEvent(), sandboxKey)).toMatchObject({ status: 429 });
  });
});
