/**
 * Whether a receiver or our network failed: what distinguishes the two, who gets the benefit of the doubt, what begins
 * and ends an outage.
 */
import { describe, expect, it, jest } from '@jest/globals';
import { HOUR_MS, TimeLimitExceeded } from '@posthorn/core';
import type { SendResult } from '@posthorn/sender';
import { eventually, HUNG_MS } from '@posthorn/testing';
import { type Outage, Outages } from './network-outage.ts';
import { createReachedSites } from './reached-sites.ts';

const noName: SendResult = { kind: 'connection_failed', error: 'dns', detail: 'ETIMEOUT', ip: null };
const noRoute: SendResult = {
  kind: 'connection_failed',
  error: 'connection',
  detail: 'EHOSTUNREACH',
  ip: '198.51.100.1',
};
const noConnection: SendResult = { kind: 'timed_out', isConnected: false, ip: '198.51.100.1' };
const noResponse: SendResult = { kind: 'timed_out', isConnected: true, ip: '198.51.100.1' };
const url = 'https://dead.example/hook';

/** Sites that were reached, and a network that is up or down. */
function setUp(count = 5, moreUrls = async () => ['https://new.example/hook']) {
  const network = { names: true, hosts: true, resolves: '' };
  const sites = createReachedSites();
  for (let i = 0; i < count; i++) {
    sites.resolved(`a.site${i}.example`, 1_000);
    sites.connected(`https://a.site${i}.example`, `192.0.${i}.1`, 1_000);
  }
  const probed: string[] = [];
  const changes: string[] = [];
  const clock = { nowMs: 1_000_000, elapsedMs: 0, inFlight: 1 };
  const name = async (hostname: string) => {
    probed.push(hostname);
    await new Promise(setImmediate);
    if (!network.names && hostname !== network.resolves) return 'dns' as const;
    outages.resolved(hostname);
    return 'reached' as const;
  };
  const outages = new Outages({
    sites,
    probe: {
      name,
      async host(at) {
        if ((await name(new URL(at).hostname)) === 'dns') return 'dns';
        if (!network.hosts) return 'connection';
        outages.connected(at, '203.0.113.1');
        return 'reached';
      },
    },
    inFlight: () => clock.inFlight,
    now: () => clock.nowMs,
    elapsedMs: () => clock.elapsedMs,
    onStart: ({ kind }: Outage) => changes.push(`${kind} fails`),
    onEnd: ({ startedAtMs }, endedAtMs) => changes.push(`over after ${endedAtMs - startedAtMs}`),
    onNoSocket: (code) => changes.push(code),
    moreUrls,
  });
  /** Of an attempt that begins now, unless told otherwise. */
  const isOurs = (result: SendResult, at: string, startedAtMs = clock.nowMs) => outages.isOurs(result, at, startedAtMs);
  return { network, sites, outages, isOurs, probed, changes, clock };
}

describe('judging a failed attempt', () => {
  it('blames the receiver if another site can be reached afterwards', async () => {
    const { isOurs, outages, changes } = setUp();
    for (const result of [noName, noRoute, noConnection, noResponse]) {
      expect(await isOurs(result, url)).toBe(false);
    }
    expect([outages.current(), changes]).toEqual([undefined, []]);
  });
  it.each(['EMFILE', 'ENFILE', 'ENOBUFS'])('blames the worker for %s, even if other sites can be reached', (detail) => {
    const { isOurs, outages, changes, probed } = setUp();
    expect(isOurs({ ...noRoute, detail }, url)).toBe(true);
    expect([outages.current(), changes, probed]).toEqual([undefined, [detail], []]);
  });
  it('blames the worker’s own network if no other site can be reached', async () => {
    const { isOurs, outages, network, changes, clock } = setUp();
    network.names = false;
    // Many at once, of the sites that are remembered as well.
    const results = [0, 1, 2, 3, 4].map((i) => isOurs(noName, `https://a.site${i}.example/hook`));
    expect(await Promise.all(results)).toEqual([true, true, true, true, true]);
    expect(outages.current()).toEqual({ kind: 'dns', startedAtMs: clock.nowMs });
    expect(changes).toEqual(['dns fails']);
  });
  it.each([noRoute, noConnection, noResponse])(
    'judges a failed connection by connections to other sites: %j',
    async (result) => {
      const { isOurs, network, changes } = setUp();
      network.hosts = false;
      expect(await isOurs(noName, url)).toBe(false);
      expect(await isOurs(result, url)).toBe(true);
      expect(changes).toEqual(['connection fails']);
    },
  );
  it('counts only what happens after the failure, not before it', async () => {
    const { isOurs, outages, network } = setUp();
    outages.resolved('a.site1.example');
    network.names = false;
    expect(await isOurs(noName, url)).toBe(true);
  });
  it('blames the receiver, without waiting for probes, if other attempts get through meanwhile', async () => {
    const { isOurs, outages, network, changes } = setUp();
    network.names = false;
    const late = isOurs(noName, url);
    outages.resolved('b.site1.example');
    expect(await late).toBe(false);
    network.hosts = false;
    const silent = isOurs(noResponse, url);
    await isOurs({ kind: 'responded', statusCode: 500, ip: null }, 'https://a.site1.example/');
    expect(await silent).toBe(false);
    // A response over a kept connection does not prove that new ones can be established; a refused one does.
    const unconnected = isOurs(noConnection, url);
    await isOurs({ kind: 'responded', statusCode: 200, ip: null }, 'https://a.site1.example/');
    const refused: SendResult = { ...noRoute, kind: 'connection_failed', error: 'connection', detail: 'ECONNREFUSED' };
    expect(await isOurs(refused, 'https://a.site2.example/')).toBe(false);
    expect(await unconnected).toBe(false);
    expect(changes).toEqual([]);
  });
  it('blames the receiver if all remembered sites fail, but one that responded over its kept connection can be reached', async () => {
    const { isOurs, network, changes } = setUp();
    await isOurs({ kind: 'responded', statusCode: 200, ip: null }, 'https://alive.example/hook');
    Object.assign(network, { names: false, resolves: 'alive.example' });
    expect(await isOurs(noName, url)).toBe(false);
    expect(await isOurs(noConnection, url)).toBe(false);
    expect(changes).toEqual([]);
  });
  it('blames the receiver if fewer than three other sites are known', async () => {
    const { isOurs, network, probed } = setUp(3);
    network.names = false;
    expect(await isOurs(noName, 'https://b.site1.example/')).toBe(false);
    expect(probed).toEqual([]);
    expect(await isOurs(noName, url)).toBe(true);
  });
  it('blames the receiver if many names of one domain, or many hosts of one network, fail together', async () => {
    const { isOurs, sites, network } = setUp(0);
    for (let i = 0; i < 50; i++) {
      sites.resolved(`customer${i}.platform.example`, 1_000);
      sites.connected(`https://customer${i}.platform.example`, `192.0.2.${i}`, 1_000);
    }
    Object.assign(network, { names: false, hosts: false });
    expect(await isOurs(noName, 'https://customer1.platform.example/')).toBe(false);
    expect(await isOurs(noResponse, 'https://customer1.platform.example/')).toBe(false);
  });
  it('counts a failure at once if the host itself or the address guard reported it', async () => {
    const { isOurs, network, probed } = setUp();
    Object.assign(network, { names: false, hosts: false });
    const results: SendResult[] = [
      { kind: 'responded', statusCode: 503, ip: null },
      { kind: 'address_blocked', reason: 'private_address', ip: null },
      { kind: 'connection_failed', error: 'tls', detail: 'CERT_HAS_EXPIRED', ip: null },
      { kind: 'connection_failed', error: 'connection', detail: 'ECONNRESET', ip: null },
    ];
    for (const result of results) expect(await isOurs(result, url)).toBe(false);
    expect(probed).toEqual([]);
  });
});

describe('an outage', () => {
  it('begins when nothing gets through while attempts are in flight, and not while none is', async () => {
    const { isOurs, outages, network, clock, changes, probed } = setUp();
    network.hosts = false;
    clock.inFlight = 0;
    clock.elapsedMs = 60_000;
    await outages.check();
    clock.inFlight = 1;
    clock.elapsedMs += 4_000;
    await outages.check();
    expect(probed).toEqual([]);
    clock.elapsedMs += 1;
    await outages.check();
    await eventually('the outage to be noticed', () => changes.length === 1);
    expect(changes).toEqual(['connection fails']);
    // What is in flight and gets nothing is not counted either.
    expect(await isOurs(noName, url)).toBe(true);
  });
  it('does not begin if a probe gets through', async () => {
    const { outages, clock, changes, probed } = setUp();
    clock.elapsedMs = 4_001;
    await outages.check();
    await eventually('the probes to be made', () => probed.length > 0);
    clock.elapsedMs += 4_000;
    await outages.check();
    expect(probed.length).toBe(5);
    expect(changes).toEqual([]);
  });
  it('ends, if it is one of name resolution, as soon as a name resolves', async () => {
    const { isOurs, outages, network, clock, changes } = setUp();
    network.names = false;
    await isOurs(noName, url);
    await outages.check();
    outages.connected('https://192.0.2.9', '192.0.2.9');
    expect(outages.current()).toBeDefined();
    network.names = true;
    clock.nowMs += HOUR_MS;
    await outages.check();
    expect([outages.current(), outages.endedAtMs()]).toEqual([undefined, clock.nowMs]);
    expect(changes).toEqual(['dns fails', 'over after 3600000']);
    // An attempt that began during the outage may take until after its end to fail.
    clock.nowMs += 5_000;
    clock.elapsedMs += 5_000;
    expect(await isOurs(noRoute, url, clock.nowMs - 5_001)).toBe(true);
    expect(await isOurs(noRoute, url, clock.nowMs - 4_999)).toBe(false);
  });
  it('still explains a failed lookup of an attempt that began after its end, for as long as a lookup takes', async () => {
    const { isOurs, outages, network, clock } = setUp();
    network.names = false;
    await isOurs(noName, url);
    network.names = true;
    await outages.check();
    // The attempt may share the lookup of a probe that began during the outage.
    clock.nowMs += 5_000;
    clock.elapsedMs += 5_000;
    expect(await isOurs(noName, url)).toBe(true);
    clock.nowMs += 1;
    clock.elapsedMs += 1;
    expect(await isOurs(noName, url)).toBe(false);
  });
  it('has not ended in the future if the clock is set back after it', async () => {
    const { isOurs, outages, network, clock } = setUp();
    expect(outages.endedAtMs()).toBe(0);
    network.names = false;
    await isOurs(noName, url);
    network.names = true;
    await outages.check();
    clock.nowMs -= 600_000;
    clock.elapsedMs += 10;
    expect(outages.endedAtMs()).toBe(clock.nowMs - 10);
    expect(await isOurs(noRoute, url)).toBe(false);
  });
  it('ends by an address that responded lately if the remembered sites stay away', async () => {
    const { isOurs, outages, network, changes } = setUp();
    await isOurs({ kind: 'responded', statusCode: 500, ip: null }, 'https://alive.example/hook');
    network.names = false;
    expect(await isOurs(noName, url)).toBe(true);
    network.resolves = 'alive.example';
    await outages.check();
    expect(changes).toEqual(['dns fails', 'over after 0']);
  });
  it('ends by an address that nobody has tried yet if the remembered sites are gone for good', async () => {
    const { isOurs, outages, network, changes, probed } = setUp();
    network.names = false;
    await isOurs(noName, url);
    for (let i = 0; i < 29; i++) await outages.check();
    expect(probed).not.toContain('new.example');
    network.resolves = 'new.example';
    await outages.check();
    expect(changes).toEqual(['dns fails', 'over after 0']);
  });
  it('still ends if Redis does not reply to the question for further addresses', async () => {
    const { isOurs, outages, network, changes } = setUp(5, () => new Promise(() => undefined));
    network.names = false;
    await isOurs(noName, url);
    for (let i = 0; i < 29; i++) await outages.check();
    jest.useFakeTimers();
    const checked = outages.check().catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(HUNG_MS);
    jest.useRealTimers();
    expect(await checked).toBeInstanceOf(TimeLimitExceeded);
    network.names = true;
    await outages.check();
    expect(changes).toEqual(['dns fails', 'over after 0']);
  });
});
