/** Posthorn with Redis Sentinel: failovers, with and without TLS, and sentinels that hang or are gone. */
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { atEnd, ownClient, ownProcess, ownProxy } from './own.ts';
import { complaintsOf } from './processes.ts';
import { accepted, asArguments, redisServer, startSentinels, system, tls } from './redis-servers.ts';
import { sampleEvent, worldEnv } from './world.ts';

/** A master with a replica, under `count` sentinels. */
async function watchedPair(count: number) {
  const master = await redisServer(['--repl-diskless-sync-delay', '0']);
  await redisServer(['--replicaof', '127.0.0.1', String(master.port)]);
  return { master, ...(await startSentinels(master.port, { count, replicas: 1 })) };
}
const throughSentinels = (ports: number[]) => ({
  REDIS_URL: 'redis://anywhere',
  REDIS_SENTINELS: ports.map((port) => ({ host: '127.0.0.1', port })),
  REDIS_SENTINEL_NAME: 'posthorn',
});
describe('Sentinel', () => {
  it.each([
    ['dies', 'SIGKILL'],
    ['hangs, and continues after the failover', 'SIGSTOP'],
  ] as const)('loses nothing accepted when the master %s, and all continue with the new one', async (_how, signal) => {
    const careful = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '2', '--repl-diskless-sync-delay', '0'];
    const master = await redisServer(careful);
    for (let i = 0; i < 2; i++) await redisServer(['--replicaof', '127.0.0.1', String(master.port), ...careful]);
    const { servers, allowFailover } = await startSentinels(master.port, { count: 3, replicas: 2 });
    const settings = {
      REDIS_SENTINELS: servers.map(({ port }) => `127.0.0.1:${port}`).join(','),
      REDIS_SENTINEL_NAME: 'posthorn',
      ACK_REPLICAS: '1',
    };
    const { publish, deliveries, to, ingest } = await system(settings, { eager: true });
    expect(ingest.output.join('')).not.toContain('min-replicas-to-write 0');

    const ids = new Set<string>();
    const answers = new Set<number>();
    let publishing = true;
    const publishers = Array.from({ length: 4 }, async () => {
      while (publishing) {
        const { status, body } = await publish(sampleEvent());
        answers.add(status);
        if (status === 202) ids.add(body.id);
      }
    });
    await eventually('some events', () => ids.size > 100);
    answers.clear();
    process.kill(master.pid, signal);
    await eventually('a publisher to get 503', () => answers.has(503));
    const before = ids.size;
    await allowFailover();
    await eventually('events through the new master', () => ids.size > before + 100);
    if (signal === 'SIGSTOP') {
      process.kill(master.pid, 'SIGCONT');
      const client = ownClient({ REDIS_URL: master.url });
      await eventually('the old master to become a replica', async () =>
        /master_link_status:up/.test(await client.info('replication')),
      );
    }
    publishing = false;
    await Promise.all(publishers);
    expect(complaintsOf(ingest)).toEqual([]);
    expect([...answers].sort()).toEqual([202, 503]);
    const arrived = () => new Set(to.requests.map(({ headers }) => headers['service-event-id']));
    await eventually('all accepted events', () => {
      const there = arrived();
      return [...ids].every((id) => there.has(id));
    });
    await eventually('their records', async () => (await deliveries('status=pending')).length === 0);
  });

  it('follows a failover if sentinels and servers require TLS and a password', async () => {
    const [{ cert, settings: withTls }, password] = [tls(), 'p0sthorn-s3cret'];
    const server = async (extra: string[] = []) => {
      const settings = { ...withTls, 'tls-replication': 'yes', requirepass: password, masterauth: password };
      const tlsPort = await freePort();
      const more = [
        '--tls-port',
        String(tlsPort),
        ...asArguments(settings),
        '--repl-diskless-sync-delay',
        '0',
        ...extra,
      ];
      return { ...(await redisServer(more)), tlsPort };
    };
    const master = await server();
    await server(['--replicaof', '127.0.0.1', String(master.tlsPort)]);
    const sentinelPort = await freePort();
    const settings = { ...withTls, 'tls-replication': 'yes', 'tls-port': String(sentinelPort) };
    const { allowFailover } = await startSentinels(master.tlsPort, { count: 1, replicas: 1, settings, password });
    const { publish, to, ingest, worker, operator } = await system({
      REDIS_URL: `rediss://:${password}@anywhere`,
      REDIS_SENTINELS: `127.0.0.1:${sentinelPort}`,
      REDIS_SENTINEL_NAME: 'posthorn',
      REDIS_SENTINEL_PASSWORD: password,
      NODE_EXTRA_CA_CERTS: cert,
      ACK_REPLICAS: '1',
    });
    await accepted(() => publish(sampleEvent({ id: 'evt_before' })));
    process.kill(master.pid, 'SIGKILL');
    await allowFailover();
    // The only replica becomes the master, so there is no replica to wait for: the event is stored and delivered, but
    // the response is 503.
    await eventually('an event through the new master', async () => {
      await publish(sampleEvent({ id: 'evt_after' }));
      return to.requests.some(({ headers }) => headers['service-event-id'] === 'evt_after');
    });
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_before');
    for (const line of [...ingest.output, ...worker.output, ...operator.output]) expect(line).not.toContain(password);
  });

  it('keeps a client usable that hears of the failover while it already looks for the new master', async () => {
    const { master, servers, allowFailover } = await watchedPair(1);
    const slow = await ownProxy(servers[0]!.port);
    const clients = Array.from({ length: 10 }, () => ownClient(throughSentinels([slow.port])));
    for (const client of clients) client.on('error', () => undefined);
    await Promise.all(clients.map((client) => client.set('before', '1')));
    await eventually('all to be subscribed', async () => slow.connections() >= clients.length);
    // Nearly all the time is spent looking for the master.
    slow.delay(200);
    process.kill(master.pid, 'SIGKILL');
    await allowFailover();
    expect(await Promise.all(clients.map((client) => client.set('after', '1')))).toEqual(clients.map(() => 'OK'));
  });

  it('says that the master does not respond, not that no sentinel knows it, until there is a new one', async () => {
    const { master, servers } = await watchedPair(1);
    const client = ownClient(throughSentinels([servers[0]!.port]));
    const errors: string[] = [];
    client.on('error', ({ message }) => errors.push(message));
    await client.set('before', '1');
    process.kill(master.pid, 'SIGKILL');
    await eventually('several attempts', () => errors.length > 4);
    expect(new Set(errors)).toEqual(new Set([`connect ECONNREFUSED 127.0.0.1:${master.port}`]));
  });

  it('says that no sentinel knows a master of that name', async () => {
    const { servers } = await watchedPair(1);
    const env = { ...worldEnv('posthorn', 'redis://anywhere'), LOG_LEVEL: 'info', REDIS_SENTINEL_NAME: 'other' };
    const ingest = ownProcess('ingest', { ...env, REDIS_SENTINELS: `127.0.0.1:${servers[0]!.port}` });
    await eventually('the reason', () =>
      ingest.output.join('\n').includes('no sentinel knows a master named \\"other\\". Check REDIS_SENTINEL_NAME.'),
    );
  });

  it('delays nobody if one sentinel hangs', async () => {
    const { servers } = await watchedPair(2);
    process.kill(servers[0]!.pid, 'SIGSTOP');
    const client = ownClient(throughSentinels(servers.map(({ port }) => port)));
    atEnd(() => process.kill(servers[0]!.pid, 'SIGCONT'));
    expect(await client.set('key', '1')).toBe('OK');
  });

  it('fails commands in time, later ones at once, and queues none in memory, if no sentinel is left', async () => {
    const { master, servers } = await watchedPair(1);
    const client = ownClient(throughSentinels([servers[0]!.port]), { failFastAfterMs: 300 });
    client.on('error', () => undefined);
    await eventually('it to work', async () => (await client.set('key', '1').catch(() => undefined)) === 'OK');
    for (const { pid } of [...servers, master]) process.kill(pid, 'SIGKILL');
    await eventually('it to be lost', () => client.status !== 'ready');
    await expect(client.set('key', '2')).rejects.toThrow(
      /Command timed out|Connection is closed|The connection to Redis broke/,
    );
    await eventually('commands to fail at once', async () => {
      let failed = false;
      client.set('key', '3').catch(() => {
        failed = true;
      });
      await new Promise(setImmediate);
      return failed;
    });
  });
});
