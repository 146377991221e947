/** Names against a name server that responds, refuses, or never says anything. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type NameAnswer, type NameServer, startNameServer } from '@posthorn/testing';
import { createResolver, parseNameServers } from './index.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function nameServer(answer: (name: string, family: 4 | 6) => NameAnswer): Promise<NameServer> {
  const server = await startNameServer(answer);
  undo.push(() => server.close());
  return server;
}
function hostsFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-hosts-'));
  undo.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'hosts'), text);
  return join(folder, 'hosts');
}
const v4 = (address: string) => ({ address, family: 4 });
const v6 = (address: string) => ({ address, family: 6 });

describe('names', () => {
  it('resolve to all their addresses, IPv4 first', async () => {
    const server = await nameServer(() => ['2001:db8::2', '192.0.2.1', '192.0.2.2', '2001:db8:0:1::']);
    const resolve = createResolver({ servers: [server.address] });
    expect(await resolve('A.example')).toEqual([
      v4('192.0.2.1'),
      v4('192.0.2.2'),
      v6('2001:db8::2'),
      v6('2001:db8:0:1::'),
    ]);
  });
  it('resolve to up to 100 IPs of each family, and fail with one more, since each is checked', async () => {
    const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);
    const [all, v4s, v6s] = [many('192.0.2.', 100), many('192.0.2.', 101), many('2001:db8::', 101)];
    for (const [ips, found] of [
      [all, all.map(v4)],
      [v4s, 'TOO_MANY_IPS'],
      [[...all, ...v6s], 'TOO_MANY_IPS'],
    ] as const) {
      const server = await nameServer(() => ips);
      const resolved = createResolver({ servers: [server.address] })('a.example');
      expect(await resolved.catch(({ code }) => code)).toEqual(found);
    }
  });
  it('are queried as they are, without search domains, and once for all concurrent lookups', async () => {
    const server = await nameServer(() => ['192.0.2.1']);
    const resolve = createResolver({ servers: [server.address] });
    await Promise.all([resolve('single'), resolve('single'), resolve('SINGLE.')]);
    expect(server.queries).toEqual(['single', 'single']);
    await resolve('single');
    expect(server.queries).toHaveLength(4);
  });
  it.each([
    ['A', ['192.0.2.1'], [v4('192.0.2.1')]],
    ['AAAA', ['2001:db8::1'], [v6('2001:db8::1')]],
  ] as const)('resolve if they have %s records alone', async (_type, addresses, expected) => {
    const server = await nameServer(() => addresses);
    expect(await createResolver({ servers: [server.address] })('a.example')).toEqual(expected);
  });
  it.each(['silent', 'refused', 'missing'] as const)(
    'resolve if the name server is %s for one of the two families',
    async (other) => {
      const server = await nameServer((_name, family) => (family === 4 ? ['192.0.2.1'] : other));
      expect(await createResolver({ servers: [server.address] })('a.example')).toEqual([v4('192.0.2.1')]);
    },
  );
  it.each([
    ['missing', 'ENOTFOUND'],
    ['refused', 'EREFUSED'],
    ['silent', 'ETIMEOUT'],
    [[], 'ENODATA'],
  ] as const)('are rejected if they are %s, with %s', async (answer, code) => {
    const server = await nameServer(() => answer);
    const resolve = createResolver({ servers: [server.address], attemptTimeoutMs: 1_600 });
    await expect(resolve('a.example')).rejects.toMatchObject({ name: 'NameError', code });
  });
  it.each([
    [1_600, 1_000],
    [8_000, 5_000],
    [80_000, 5_000],
  ])(
    'of an attempt of %d ms have %d ms, and IPs of one family wait 500 ms for the other',
    async (attemptTimeoutMs, limitMs) => {
      const server = await nameServer(() => ['192.0.2.1', '2001:db8::1']);
      const resolve = createResolver({ servers: [server.address], attemptTimeoutMs });
      const timers = jest.spyOn(globalThis, 'setTimeout');
      undo.push(() => timers.mockRestore());
      await resolve('a.example');
      expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([limitMs, 500]);
    },
  );
  it('resolve while names of a silent domain wait', async () => {
    const server = await nameServer((name) => (name.endsWith('silent.test') ? 'silent' : ['192.0.2.1']));
    const resolve = createResolver({ servers: [server.address] });
    // Their queries leave in one burst: more of them would overflow the receive buffer of the name server.
    const silent = Promise.allSettled(Array.from({ length: 90 }, (_, i) => resolve(`${i}.silent.test`)));
    for (let i = 0; i < 20; i++) expect(await resolve(`${i}.example`)).toEqual([v4('192.0.2.1')]);
    for (const { status } of await silent) expect(status).toBe('rejected');
  });
  it('are not queried if they are in the hosts file', async () => {
    const server = await nameServer(() => 'missing');
    const file = hostsFile('# a comment\n10.1.2.3 Gateway gateway.example # another\n::5 gateway\nnonsense\n');
    const resolve = createResolver({ servers: [server.address], hostsFile: file });
    expect(await resolve('gateway')).toEqual([v4('10.1.2.3'), v6('::5')]);
    expect(await resolve('gateway.EXAMPLE.')).toEqual([v4('10.1.2.3')]);
    await expect(resolve('nonsense')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(server.queries).toEqual(['nonsense', 'nonsense']);
  });
  it('are each refused with the reason while the hosts file cannot be read', async () => {
    const server = await nameServer(() => ['192.0.2.1']);
    const folder = join(hostsFile(''), '..');
    const resolve = createResolver({ servers: [server.address], hostsFile: folder });
    for (const name of ['a.example', 'b.example'])
      await expect(resolve(name)).rejects.toMatchObject({ code: 'EISDIR' });
  });
  it('resolve to loopback if they are localhost, also without a hosts file', async () => {
    const server = await nameServer(() => ['192.0.2.1']);
    const resolve = createResolver({ servers: [server.address], hostsFile: '/nowhere/hosts' });
    for (const name of ['localhost', 'LOCALHOST.', 'a.localhost']) {
      expect(await resolve(name)).toEqual([v4('127.0.0.1'), v6('::1')]);
    }
    expect(server.queries).toEqual([]);
  });
});

describe('a list of name servers', () => {
  it('is read with and without ports', () => {
    expect(parseNameServers(' 10.0.0.2, 10.0.0.3:5353,[2001:db8::1]:53 ,2001:db8::2')).toEqual([
      '10.0.0.2',
      '10.0.0.3:5353',
      '[2001:db8::1]:53',
      '2001:db8::2',
    ]);
    expect(parseNameServers('')).toEqual([]);
  });
  it.each(['ns.example', '10.0.0', '10.0.0.2:0x', '[::1', '10.0.0.2;10.0.0.3'])('is refused, naming %j', (text) => {
    expect(() => parseNameServers(`10.0.0.1,${text}`)).toThrow(`"${text}" is not`);
  });
});
