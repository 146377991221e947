/** Reports why Redis can't be used: each reason at once, then once a minute. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { bareHost, StorageUnavailable, withPort } from '@posthorn/core';
import type { HostAndPort, RedisSettings } from './connect-redis.ts';
import { typedError } from './storage-errors.ts';

/** The same reason is repeated after this. */
const REPEAT_MS = 60_000;
/** Time that a server has to say why it refuses a connection. */
const REFUSAL_TIMEOUT_MS = 1_000;
/** Longer than any refusal of Redis. */
const MAX_REFUSAL_LENGTH = 4_096;

/** Errors that only say that a connection ended, or that no reply comes, not why. */
const NO_REASON =
  /^(No reply within \d+ s$|Connection is closed|Command aborted|The connection to Redis broke|Failed to refresh slots|None of startup nodes|\w+ (EPIPE|ECONNRESET))/;
const SENTINELS_FAILED = /^All sentinels are unreachable[^:]*?(?:Last error: (.*))?$/s;
/** The reply of a sentinel that watches no master of this name. */
const NO_SUCH_MASTER = /^ERR No such master/;

/**
 * Returns a function to call with each error of a connection to Redis, or with undefined if it closed without one. That
 * calls `warn` with a sentence: the server's address, the reason, and what to do about it where that is known. It has
 * no password. `now` is in milliseconds.
 */
export function createRedisReport(
  settings: RedisSettings,
  warn: (text: string) => void,
  now = () => performance.now(),
): (error: Error | undefined) => Promise<void> {
  const { where, addresses, tls } = describeServers(settings);
  const reportedAtMs = new Map<string, number>();
  let probedAtMs = Number.NEGATIVE_INFINITY;
  const isRecent = (atMs: number | undefined) => atMs !== undefined && now() - atMs < REPEAT_MS;
  return async (error) => {
    let reason = reasonOf(error, settings);
    if (reason === undefined) {
      if (isRecent(probedAtMs)) return;
      probedAtMs = now();
      reason = await readRefusal(addresses, tls);
      // The cause may have been reported just before the connection closed.
      if (reason === undefined && [...reportedAtMs.values()].some(isRecent)) return;
      reason ??= error?.message ?? 'it closes the connection';
    }
    // The first word tells reasons apart: connect, getaddrinfo, DENIED, WRONGPASS, LOADING and so on.
    const [kind = ''] = reason.split(' ', 1);
    if (isRecent(reportedAtMs.get(kind))) return;
    reportedAtMs.set(kind, now());
    warn(`${where} can't be used: ${reason.replace(/\.?\s*$/, '.')}${adviceOn(reason, error)} Waiting for it.`);
  };
}

/** The servers that the settings name, without user and password. */
export function describeServers(settings: RedisSettings): { where: string; addresses: HostAndPort[]; tls: boolean } {
  const { REDIS_CLUSTER_NODES: nodes = [], REDIS_SENTINELS: sentinels = [] } = settings;
  const { hostname, port, protocol } = new URL(settings.REDIS_URL);
  const list = (addresses: readonly HostAndPort[]) =>
    addresses.map(({ host, port }) => withPort(host, port)).join(', ');
  const tls = protocol === 'rediss:';
  if (nodes.length > 0)
    return { where: `Redis Cluster at ${list(nodes)}, or a part of it,`, addresses: [...nodes], tls };
  if (sentinels.length > 0)
    return { where: `Redis behind the sentinels at ${list(sentinels)}`, addresses: [...sentinels], tls };
  const address = { host: bareHost(hostname), port: Number(port || 6379) };
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
    if (lastError !== undefined && !NO_SUCH_MASTER.test(lastError))
      return NO_REASON.test(lastError) ? undefined : lastError;
    return `no sentinel knows a master named "${settings.REDIS_SENTINEL_NAME}". Check REDIS_SENTINEL_NAME`;
  }
  // Node leaves the message empty where a name has several addresses.
  const message = typedError(error).message || String((error as NodeJS.ErrnoException).code ?? error.name);
  return NO_REASON.test(message) ? undefined : message;
}

const RIGHTS_ADVICE = ' Give the user of REDIS_URL the rights listed in docs/redis.md.';

/** What to do about a refusal; '' where the reason already says so, or it may be temporary. */
function adviceOn(reason: string, error: Error | undefined): string {
  const isOfSentinel = error !== undefined && SENTINELS_FAILED.test(error.message);
  if (/^(WRONGPASS|NOAUTH|ERR invalid password|ERR .*\bAUTH\b)/.test(reason))
    return isOfSentinel ? ' Check REDIS_SENTINEL_PASSWORD.' : ' Check user and password in REDIS_URL.';
  if (/^NOPERM/.test(reason)) return RIGHTS_ADVICE;
  // Redis does not say which one.
  if (/The user executing the script can't run|ACL failure in script/.test(reason))
    return `${RIGHTS_ADVICE} \`ACL LOG\` of Redis names what it lacks.`;
  if (/\b(EMFILE|ENFILE)\b/.test(reason)) return ' Raise the limit of open files (ulimit -n, fs.file-max).';
  return '';
}

/**
 * The reason that the first of these servers gives for refusing a connection: Redis in protected mode, or with too many
 * clients, writes one line before it closes, which ioredis drops. The network error where the server can't be reached;
 * undefined where no server gives a reason.
 */
async function readRefusal(addresses: readonly HostAndPort[], tls: boolean): Promise<string | undefined> {
  const words = await Promise.all(addresses.map((address) => refusalOf(tls ? connectTls(address) : connect(address))));
  return words.find((text) => text !== undefined);
}

function refusalOf(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let said = '';
    const timer = setTimeout(() => socket.destroy(), REFUSAL_TIMEOUT_MS);
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      said += text;
      if (said.includes('\n') || said.length > MAX_REFUSAL_LENGTH) socket.destroy();
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
