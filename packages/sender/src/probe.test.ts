/** What a probe reaches, and that it sends nothing. */
import { createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { startNameServer } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { createProbe, createResolver, createSender, parseNetworks } from './index.ts';

async function setUp(allowed = '127.0.0.0/8') {
  const names = await startNameServer((name) =>
    name === 'there.test' ? ['127.0.0.1'] : name === 'inside.test' ? ['10.0.0.1'] : 'missing',
  );
  atEnd(() => names.close());
  let connections = 0;
  let bytes = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as { port: number };
  const [resolved, connected]: string[][] = [[], []];
  const allowedNetworks = parseNetworks(allowed);
  const resolve = createResolver({ servers: [names.address], onResolved: (name) => resolved!.push(name) });
  const onConnected = (origin: string, ip: string) => connected!.push(`${origin} ${ip}`);
  const probe = createProbe({ allowedNetworks, resolve, timeoutMs: 5_000, onConnected });
  return {
    probe,
    port,
    resolve,
    allowedNetworks,
    onConnected,
    resolved,
    connected,
    got: () => ({ connections, bytes }),
  };
}

describe('a probe', () => {
  it('connects to a host and sends nothing; a refused connection counts as a response', async () => {
    const { probe, port, connected, got } = await setUp();
    expect(await probe.host(`http://there.test:${port}/hook?x`)).toBe('reached');
    expect(await probe.host('http://127.0.0.1:2')).toBe('reached');
    expect(connected).toEqual([`http://there.test:${port} 127.0.0.1`, 'http://127.0.0.1:2 127.0.0.1']);
    expect(got()).toEqual({ connections: 1, bytes: 0 });
  });
  it('distinguishes a name that does not resolve from an address that the guard refuses', async () => {
    const { probe, connected } = await setUp();
    expect(await probe.host('http://gone.test/')).toBe('dns');
    expect(await probe.host('http://inside.test/')).toBe('blocked');
    expect(await probe.host('http://10.0.0.1/')).toBe('blocked');
    expect(connected).toEqual([]);
  });
  it('proves name resolution by names only, not by IP addresses', async () => {
    const { probe, resolved } = await setUp();
    expect(await probe.name('there.test')).toBe('reached');
    expect([await probe.name('gone.test'), await probe.name('127.0.0.1'), await probe.name('[::1]')]).toEqual([
      'dns',
      'dns',
      'dns',
    ]);
    expect(resolved).toEqual(['there.test']);
  });
  it('fails after its time limit', async () => {
    const { allowedNetworks, onConnected } = await setUp();
    const resolve = () => new Promise<never>(() => undefined);
    const probe = createProbe({ allowedNetworks, resolve, timeoutMs: 50, onConnected });
    expect([await probe.host('http://there.test/'), await probe.name('there.test')]).toEqual(['dns', 'dns']);
  });
});

describe('a sender and its resolver', () => {
  it('report each new connection and each name that DNS has resolved, but not those of the hosts file', async () => {
    const { port, resolve, allowedNetworks, onConnected, resolved, connected } = await setUp();
    const sender = createSender({ allowedNetworks, resolve, onConnected, timeoutMs: 60_000, userAgent: 'test' });
    atEnd(() => sender.close());
    for (const host of ['there.test', 'localhost', 'gone.test']) {
      await sender.send({ url: `http://${host}:${port}/`, headers: {}, body: '' });
    }
    expect(resolved).toEqual(['there.test']);
    expect(connected).toEqual([`http://there.test:${port} 127.0.0.1`, `http://localhost:${port} 127.0.0.1`]);
  });
});
