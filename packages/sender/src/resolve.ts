/**
 * Resolves host names without threads: from the hosts file, then from DNS over sockets of this process. The guard
 * checks the IPs.
 */
import { type LookupAddress, Resolver } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { knownOrNew } from '@posthorn/core';
import { listOf } from './guard.ts';

/** Returns all IPs of a name. Rejects with `NameError`, or the system's error for a hosts file that can't be read. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

/**
 * A name has no IP or too many, or its name servers sent no usable response. `code` is that of node:dns, such as
 * `ENOTFOUND`, or `TOO_MANY_IPS`.
 */
export class NameError extends Error {
  override name = 'NameError';
  readonly code: string;
  constructor(hostname: string, code: string) {
    super(`Resolving ${hostname} failed: ${code}`);
    this.code = code;
  }
}

interface ResolverOptions {
  /** Name servers as `ip` or `ip:port`; those of /etc/resolv.conf if there are none. */
  servers?: readonly string[];
  /** The time limit of an attempt. A lookup, with all its retries, has five eighths of it, and at most 5 seconds. */
  attemptTimeoutMs?: number;
  hostsFile?: string;
  /** Called with each name for which DNS has returned IPs; not with names from the hosts file. */
  onResolved?: ((hostname: string) => void) | undefined;
}

/**
 * The longest that a lookup takes. Well below the limit of an attempt, so that a silent name server is not mistaken for
 * a silent receiver.
 */
export const MAX_LOOKUP_MS = 5_000;
const LOOKUP_SHARE = 5 / 8;
/** First wait for a name server. It doubles up to the maximum with each retry. */
const QUERY_TIMEOUT_MS = 1_000;
const MAX_QUERY_TIMEOUT_MS = 2_000;
const QUERY_TRIES = 4;
/** How long the IPs of one family wait for those of the other: some name servers never respond to AAAA queries. */
const SECOND_FAMILY_MS = 500;
/**
 * IPs of each family that a name may have. A response may have thousands, and the guard checks each for each new
 * connection, which would block this process. To use some of them alone would leave the others unchecked.
 */
const MAX_IPS = 100;
/** How often the hosts file and /etc/resolv.conf are checked for changes. */
const FILE_CHECK_MS = 5_000;
const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];
const NO_SUCH_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * A resolver that never waits for a thread. It reads the hosts file first, as the system does. It looks up the name in
 * DNS exactly as given: search domains are not tried. Concurrent lookups of one name share one query. Nothing is
 * cached. IPv4 comes first.
 */
export function createResolver(options: ResolverOptions = {}): Resolve {
  const timeoutMs = Math.min(MAX_LOOKUP_MS, Math.ceil((options.attemptTimeoutMs ?? 8_000) * LOOKUP_SHARE));
  const hosts = followFile(options.hostsFile ?? '/etc/hosts', parseHosts);
  const servers = options.servers ?? [];
  const makeClient = () => {
    const client = new Resolver({
      timeout: Math.min(QUERY_TIMEOUT_MS, timeoutMs),
      tries: QUERY_TRIES,
      maxTimeout: MAX_QUERY_TIMEOUT_MS,
    });
    if (servers.length > 0) client.setServers(servers);
    return client;
  };
  // A Resolver reads /etc/resolv.conf only when it is created.
  const currentClient = followFile('/etc/resolv.conf', makeClient);
  const inFlight = new Map<string, Promise<LookupAddress[]>>();
  return async (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, '');
    const known = hosts().get(name) ?? (/(^|\.)localhost$/.test(name) ? LOOPBACK : undefined);
    if (known) return known;
    return await knownOrNew(inFlight, name, () => {
      const lookup = queryBoth(currentClient(), name, timeoutMs).finally(() => inFlight.delete(name));
      lookup.then(
        () => options.onResolved?.(name),
        () => undefined,
      );
      return lookup;
    });
  };
}

/**
 * Reads a comma-separated list of name servers, `ip` or `ip:port` (`[ip]:port` for IPv6). Throws an `Error` that names
 * the bad one.
 */
export function parseNameServers(text: string): string[] {
  const servers = listOf(text);
  for (const server of servers) {
    try {
      new Resolver().setServers([server]);
    } catch (cause) {
      throw new Error(`"${server}" is not the address of a name server, such as 10.0.0.2 or 10.0.0.2:5353`, { cause });
    }
  }
  return servers;
}

/** Queries A and AAAA at the same time. An IP of one family is enough. */
function queryBoth(client: Resolver, name: string, timeoutMs: number): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    const found: LookupAddress[] = [];
    const codes: string[] = [];
    let waiting = 2;
    let hasTooMany = false;
    const finish = () => {
      clearTimeout(limit);
      clearTimeout(secondFamily);
      if (hasTooMany) return reject(new NameError(name, 'TOO_MANY_IPS'));
      if (found.length > 0) return resolve(found.sort((a, b) => a.family - b.family));
      const code =
        codes.find((each) => !NO_SUCH_ADDRESS.has(each)) ?? (codes.includes('ENOTFOUND') ? 'ENOTFOUND' : 'ENODATA');
      reject(new NameError(name, code));
    };
    const onLimit = () => {
      codes.push('ETIMEOUT');
      finish();
    };
    // An answer that arrived while the process stood still is read first.
    const limit = setTimeout(() => setImmediate(onLimit), timeoutMs);
    let secondFamily: NodeJS.Timeout | undefined;
    const answered = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses?: string[]) => {
      waiting -= 1;
      if (error) codes.push(error.code ?? 'UNKNOWN');
      else if (addresses && addresses.length > MAX_IPS) hasTooMany = true;
      else for (const address of addresses ?? []) found.push({ address, family });
      if (waiting === 0 || hasTooMany) finish();
      else if (found.length > 0) secondFamily = setTimeout(finish, SECOND_FAMILY_MS);
    };
    client.resolve4(name, answered(4));
    client.resolve6(name, answered(6));
  });
}

/**
 * Returns a function that returns `read` of a file's text, and reads the file again after it has changed. A missing
 * file counts as empty. Throws for a file that can't be read, each time.
 */
function followFile<T>(path: string, read: (text: string) => T): () => T {
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let version: string | undefined;
  let value: T;
  return () => {
    const nowMs = performance.now();
    if (nowMs - checkedAtMs < FILE_CHECK_MS) return value;
    const stat = statSync(path, { throwIfNoEntry: false });
    const current = stat ? `${stat.mtimeMs}:${stat.size}:${stat.ino}` : 'none';
    if (current !== version) {
      value = read(stat ? readFileSync(path, 'utf8') : '');
      version = current;
    }
    checkedAtMs = nowMs;
    return value;
  };
}

/** Parses a hosts file into names and their IPs. Skips invalid lines, as the system does. */
function parseHosts(text: string): Map<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) knownOrNew(hosts, name.toLowerCase(), () => []).push({ address, family });
  }
  return hosts;
}
