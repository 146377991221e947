/** Says in words why Redis can't be used yet: at once, then rarely. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { StorageUnavailable } from '@posthorn/core';
import type { HostAndPort, RedisSettings } from './store.ts';

/** The same reason is repeated after this. */
const REPEAT_MS = 60_000;
/** A server that refuses a connection says why within this. */
const FIRST_WORDS_MS = 1_000;
/** More than Redis's longest refusal. */
const MAX_FIRST_WORDS = 4_096;

/** What is reported when no more is known than that a connection ended. */
const SAYS_NOTHING =
  /^(Connection is closed|Command aborted|Reached the max retries|Failed to refresh slots|None of startup nodes|\w+ (EPIPE|ECONNRESET))/;
const SENTINELS_FAILED = /^All sentinels are unreachable[^:]*?(?:Last error: (.*))?$/s;

/**
 * Returns a function that takes each error of a connection to Redis (undefined: it closed without one) and passes `warn` a sentence with the
 * server's address, the reason, and what to do about it where that is known. Contains no password. `now` is in milliseconds.
 */
export function createOutageReport(
  settings: RedisSettings,
  warn: (text: string) => void,
  now = () => performance.now(),
): (error: Error | undefined) => Promise<void> {
  const { where, addresses, tls } = describeServers(settings);
  const saidAtMs = new Map<string, number>();
  let askedAtMs = Number.NEGATIVE_INFINITY;
  const isRecent = (atMs: number | undefined) => atMs !== undefined && now() - atMs < REPEAT_MS;
  return async (error) => {
    let reason = reasonOf(error, settings);
    if (reason === undefined) {
      if (isRecent(askedAtMs)) return;
      askedAtMs = now();
      reason = await firstWords(addresses, tls);
      // The cause may have been reported just before the connection closed.
      if (reason === undefined && [...saidAtMs.values()].some(isRecent)) return;
      reason ??= error?.message ?? 'it closes the connection';
    }
    // The first word tells reasons apart: connect, getaddrinfo, DENIED, WRONGPASS, LOADING and so on.
    const kind = reason.split(' ', 1)[0]!;
    if (isRecent(saidAtMs.get(kind))) return;
    saidAtMs.set(kind, now());
    warn(`${where} can't be used: ${reason.replace(/\.?\s*$/, '.')}${adviceOn(reason, error)} Waiting for it.`);
  };
}

/** What the settings say about the servers, without user and password. */
function describeServers(settings: RedisSettings): { where: string; addresses: HostAndPort[]; tls: boolean } {
  const { REDIS_CLUSTER_NODES: nodes = [], REDIS_SENTINELS: sentinels = [] } = settings;
  const { hostname, port, protocol } = new URL(settings.REDIS_URL);
  const list = (addresses: readonly HostAndPort[]) => addresses.map(({ host, port }) => `${host}:${port}`).join(', ');
  const tls = protocol === 'rediss:';
  if (nodes.length > 0) return { where: `Redis Cluster at ${list(nodes)}`, addresses: [...nodes], tls };
  if (sentinels.length > 0)
    return { where: `Redis behind the sentinels at ${list(sentinels)}`, addresses: [...sentinels], tls };
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  return { where: `Redis at ${hostname}:${address.port}`, addresses: [address], tls };
}

/** The reason that an error names; undefined where it names none. */
function reasonOf(error: Error | undefined, settings: RedisSettings): string | undefined {
  if (error === undefined) return undefined;
  if (error instanceof StorageUnavailable && error.cause) return reasonOf(error.cause, settings);
  const { lastNodeError } = error as { lastNodeError?: Error };
  if (lastNodeError) return reasonOf(lastNodeError, settings);
  const sentinels = SENTINELS_FAILED.exec(error.message);
  if (sentinels) {
    const [, lastError] = sentinels;
    if (lastError !== undefined) return SAYS_NOTHING.test(lastError) ? undefined : lastError;
    return `no sentinel knows a master named "${settings.REDIS_SENTINEL_NAME}". Check REDIS_SENTINEL_NAME`;
  }
  // Node leaves the message empty where a name has several addresses.
  const message = error.message || String((error as NodeJS.ErrnoException).code ?? error.name);
  return SAYS_NOTHING.test(message) ? undefined : message;
}

/** What to do about a refusal; '' where Redis says it itself, or it may pass. */
function adviceOn(reason: string, error: Error | undefined): string {
  const ofSentinel = error !== undefined && SENTINELS_FAILED.test(error.message);
  if (/^(WRONGPASS|NOAUTH|ERR invalid password|ERR .*\bAUTH\b)/.test(reason))
    return ofSentinel ? ' Check REDIS_SENTINEL_PASSWORD.' : ' Check user and password in REDIS_URL.';
  if (reason.startsWith('NOPERM')) return ' Give the user of REDIS_URL the rights listed in docs/redis.md.';
  return '';
}

/**
 * What the first of these servers says that refuses a connection: Redis in protected mode, or with too many clients, writes one line of
 * its own before it closes, which ioredis drops. The error where it can't be connected to; undefined where all stay silent.
 */
async function firstWords(addresses: readonly HostAndPort[], tls: boolean): Promise<string | undefined> {
  const words = await Promise.all(
    addresses.map((address) => firstWordsOf(tls ? connectTls(address) : connect(address))),
  );
  return words.find((text) => text !== undefined);
}

function firstWordsOf(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let said = '';
    const timer = setTimeout(() => socket.destroy(), FIRST_WORDS_MS);
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      said += text;
      if (said.includes('\n') || said.length > MAX_FIRST_WORDS) socket.destroy();
    });
    socket.on('error', (error) => {
      said ||= `-${error.message}`;
    });
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(/^-([^\r\n]+)/.exec(said)?.[1]);
    });
  });
}
