/** What is said about a Redis that can't be used: the reason in its own words, once, and never the password. */
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import type { RedisSettings } from './connect-redis.ts';
import { createRedisReport } from './redis-report.ts';

const DENIED = 'DENIED Redis is running in protected mode because protected mode is enabled and no password is set.';

const servers: Server[] = [];
async function closeServers(): Promise<void> {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
}
afterEach(closeServers);

/** A server that does what Redis in protected mode does: it writes one line and closes. Returns its port. */
async function refusingServer(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    // Read to its end, or it would never close.
    socket.resume().end(`-${DENIED}\r\n`);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

/** A report that collects what it says, with a clock that stands still until it is moved. */
function newReport(settings: Partial<RedisSettings>) {
  const said: string[] = [];
  let nowMs = 0;
  const report = createRedisReport(
    { REDIS_URL: 'redis://user:s3cret@redis.internal:6380', REDIS_SENTINEL_NAME: 'main', ...settings },
    (text) => said.push(text),
    () => nowMs,
  );
  return { report, said, pass: (ms: number) => (nowMs += ms) };
}
const SENTINELS = [{ host: 's1', port: 26379 }];

describe('the report on an unusable Redis', () => {
  it('names a reason at once, and again after a minute', async () => {
    const { report, said, pass } = newReport({});
    const refused = new Error('connect ECONNREFUSED 10.0.0.1:6380');
    for (let i = 0; i < 100; i++) await report(refused);
    expect(said).toEqual([
      "Redis at redis.internal:6380 can't be used: connect ECONNREFUSED 10.0.0.1:6380. Waiting for it.",
    ]);
    pass(59_999);
    await report(refused);
    expect(said).toHaveLength(1);
    pass(1);
    await report(refused);
    expect(said).toHaveLength(2);
  });

  it('names nodes as the setting does, IPv6 addresses in brackets', async () => {
    const nodes = [...SENTINELS, { host: 'fd00::1', port: 6379 }];
    const { report, said } = newReport({ REDIS_CLUSTER_NODES: nodes });
    await report(new Error('connect ECONNREFUSED fd00::1:6379'));
    expect(said).toEqual([
      expect.stringMatching(/^Redis Cluster at s1:26379, \[fd00::1\]:6379, or a part of it, can't be used: connect/),
    ]);
  });

  it('names another reason at once', async () => {
    const { report, said } = newReport({});
    await report(new Error('connect ECONNREFUSED 10.0.0.1:6380'));
    await report(new Error('LOADING Redis is loading the dataset in memory'));
    expect(said).toHaveLength(2);
  });

  it.each([
    [{}, 'WRONGPASS invalid username-password pair or user is disabled.', 'Check user and password in REDIS_URL.'],
    [{}, 'NOAUTH Authentication required.', 'Check user and password in REDIS_URL.'],
    [{}, 'NOPERM this user has no permissions to run the type command', 'rights listed in docs/redis.md'],
    [
      {},
      "ERR The user executing the script can't run this command or subcommand",
      'listed in docs/redis.md. `ACL LOG`',
    ],
    [{}, 'connect EMFILE 10.0.0.1:6380 - Local (undefined:undefined)', 'Raise the limit of open files'],
    [
      { REDIS_SENTINELS: SENTINELS },
      'All sentinels are unreachable. Retrying from scratch after 50ms. Last error: NOAUTH Authentication required.',
      'Check REDIS_SENTINEL_PASSWORD.',
    ],
    [
      { REDIS_SENTINELS: SENTINELS },
      'All sentinels are unreachable. Retrying from scratch after 50ms.',
      'no sentinel knows a master named "main". Check REDIS_SENTINEL_NAME.',
    ],
    [
      { REDIS_SENTINELS: SENTINELS },
      'All sentinels are unreachable. Retrying from scratch after 50ms. Last error: ERR No such master with that name',
      'no sentinel knows a master named "main". Check REDIS_SENTINEL_NAME.',
    ],
  ])('says what to do, without a password (%#)', async (settings, message, advice) => {
    const { report, said } = newReport(settings);
    await report(new Error(message));
    expect(said).toEqual([expect.stringContaining(advice)]);
    expect(said.join()).not.toContain('s3cret');
  });

  it('says of a Cluster why the client gave up, and what the reply means', async () => {
    const { report, said } = newReport({ REDIS_CLUSTER_NODES: SENTINELS });
    const gaveUp = new Error('Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN The cluster is down');
    await report(new StorageUnavailable('typed', gaveUp));
    const asked = Object.assign(new Error('ASK 1584 10.0.0.3:6379'), { name: 'ReplyError' });
    await report(new StorageUnavailable('typed', asked));
    expect(said).toEqual([
      expect.stringContaining("can't be used: CLUSTERDOWN The cluster is down. Waiting for it."),
      expect.stringContaining("can't be used: Slot 1584 is being moved to 10.0.0.3:6379"),
    ]);
  });

  const closed = 'Connection is closed.';
  it.each([
    ['one Redis', (port: number) => ({ REDIS_URL: `redis://:s3cret@127.0.0.1:${port}` }), undefined],
    [
      'one Redis, whose commands wait',
      (port: number) => ({ REDIS_URL: `redis://127.0.0.1:${port}` }),
      Object.assign(new Error('Reached the max retries per request limit (which is 1).'), {
        name: 'MaxRetriesPerRequestError',
      }),
    ],
    [
      'sentinels',
      (port: number) => ({ REDIS_SENTINELS: [{ host: '127.0.0.1', port }] }),
      new Error(`All sentinels are unreachable. Retrying from scratch after 50ms. Last error: ${closed}`),
    ],
    [
      'a Cluster',
      (port: number) => ({ REDIS_CLUSTER_NODES: [{ host: '127.0.0.1', port }] }),
      Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError: new Error(closed) }),
    ],
  ])(
    'quotes the message of %s in protected mode, which the client only reports as closed',
    async (_what, settingsOf, error) => {
      const { report, said } = newReport(settingsOf(await refusingServer()));
      await report(error);
      expect(said).toEqual([expect.stringContaining(`can't be used: ${DENIED} Waiting for it.`)]);
    },
  );

  it('does not blame the connection that closes after its reason is known', async () => {
    const port = await refusingServer();
    await closeServers();
    const { report, said } = newReport({ REDIS_URL: `redis://127.0.0.1:${port}` });
    await report(new Error(`connect ECONNREFUSED 127.0.0.1:${port}`));
    await report(undefined);
    await report(new Error('Connection is closed.'));
    expect(said).toHaveLength(1);
  });
});
