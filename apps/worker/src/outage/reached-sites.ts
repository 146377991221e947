/**
 * Remembers recently reached sites, one name per domain, and one host per network and domain: the witnesses of an
 * outage (network-outage.ts).
 */
import { isIP } from 'node:net';
import { atMost, bareHost, HOUR_MS } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import { getDomain } from 'tldts-icann';
import { randomSample } from '../random-sample.ts';

/** `dns`: a name that resolved, grouped by domain; `connection`: a host that was connected to, grouped by network. */
export type SiteKind = 'dns' | 'connection';

export interface Site {
  kind: SiteKind;
  /** The domain or the network. Sites that share it may fail together, so they count as one witness. */
  group: string;
  /** A host name, or the origin of a URL. */
  at: string;
  /** When it was last reached, in milliseconds since 1970. */
  reachedAtMs: number;
  savedAtMs: number;
}

const MAX_SITES = 1_000;
/** `pick` chooses at random among this many latest sites, so that no host is probed all the time. */
const MAX_CANDIDATES = 200;
/** Counted from the site reached last, not from now: during an outage no site gets older. */
const MAX_AGE_MS = HOUR_MS;
const SAVED_FOR_MS = 60_000;
const MAX_SAVED_AT_ONCE = 100;

export type ReachedSites = ReturnType<typeof createReachedSites>;

export function createReachedSites() {
  const sites = {
    dns: new LRUCache<string, Site>(atMost(MAX_SITES)),
    connection: new LRUCache<string, Site>(atMost(MAX_SITES)),
  };
  /** By owner: the network whose witness is a host of this owner. */
  const networks = new LRUCache<string, string>(atMost(MAX_SITES));
  const unsaved = new Set<Site>();

  const note = (kind: SiteKind, group: string, at: string, nowMs: number): Site => {
    const never = Number.NEGATIVE_INFINITY;
    const site = sites[kind].get(group) ?? { kind, group, at, reachedAtMs: never, savedAtMs: never };
    site.at = at;
    site.reachedAtMs = Math.max(nowMs, site.reachedAtMs);
    sites[kind].set(group, site);
    return site;
  };
  const noteReached = (kind: SiteKind, group: string, at: string, nowMs: number) => {
    const site = note(kind, group, at, nowMs);
    if (nowMs - site.savedAtMs >= SAVED_FOR_MS && unsaved.size < MAX_SITES) unsaved.add(site);
  };
  /**
   * Whether a host may be the witness of a network: not if that is another owner's host, reached within the last hour.
   * An owner has one witness only: the one that it has in another network moves to this network. Otherwise an owner
   * whose names resolve to another IP each time would soon have all witnesses.
   */
  const mayWitness = (network: string, origin: string, nowMs: number): boolean => {
    const owner = ownerOf(origin);
    const present = sites.connection.peek(network);
    if (present && ownerOf(present.at) !== owner && nowMs - present.reachedAtMs < MAX_AGE_MS) return false;
    const before = networks.get(owner) ?? network;
    const left = before === network ? undefined : sites.connection.peek(before);
    if (left && ownerOf(left.at) === owner) {
      sites.connection.delete(before);
      left.group = network;
      sites.connection.set(network, left);
    }
    networks.set(owner, network);
    return true;
  };

  return {
    /** Notes that DNS has returned addresses of a name. */
    resolved(hostname: string, nowMs: number): void {
      noteReached('dns', domainOf(hostname), hostname, nowMs);
    },
    /** Notes that a host was connected to. */
    connected(origin: string, ip: string, nowMs: number): void {
      const network = networkOf(ip);
      if (mayWitness(network, origin, nowMs)) noteReached('connection', network, origin, nowMs);
    },
    /** Returns up to `limit` sites of different groups at random, all reached at most an hour before the latest one. */
    pick(kind: SiteKind, limit: number): Site[] {
      const latest = [...sites[kind].values()].slice(0, MAX_CANDIDATES);
      const sinceMs = Math.max(...latest.map(({ reachedAtMs }) => reachedAtMs)) - MAX_AGE_MS;
      return randomSample(
        latest.filter(({ reachedAtMs }) => reachedAtMs >= sinceMs),
        limit,
      );
    },
    /** Returns the sites to save in Redis, and marks them as saved. */
    takeUnsaved(nowMs: number): string[] {
      return [...unsaved].slice(0, MAX_SAVED_AT_ONCE).map((site) => {
        unsaved.delete(site);
        site.savedAtMs = nowMs;
        return `${site.kind} ${site.group} ${site.at}`;
      });
    },
    /** Adds the sites that other or earlier processes have saved. */
    load(saved: readonly { text: string; reachedAtMs: number }[]): void {
      for (const { text, reachedAtMs } of saved) {
        const [kind, group, at] = text.split(' ');
        if (!group || !at) continue;
        if (kind === 'dns' || (kind === 'connection' && mayWitness(group, at, reachedAtMs)))
          note(kind, group, at, reachedAtMs);
      }
    },
  };
}

/** The owner of a host decides to which IP it resolves: the domain of its name. An IP is its own owner. */
function ownerOf(origin: string): string {
  const hostname = URL.parse(origin)?.hostname ?? origin;
  return isIP(bareHost(hostname)) === 0 ? domainOf(hostname) : hostname;
}

/**
 * The registered domain of a name, by the Public Suffix List: `example.co.uk` for `hooks.example.co.uk`. Names of one
 * hosting platform share it. A name without a domain, such as `localhost`, is its own.
 */
export function domainOf(hostname: string): string {
  return getDomain(hostname) ?? hostname.toLowerCase();
}

/** The /24 of an IPv4 address, the first three groups of an IPv6 address. */
export function networkOf(ip: string): string {
  const bare = ip.replace(/^::ffff:(?=\d+\.)/, '');
  return isIP(bare) === 4 ? bare.split('.').slice(0, 3).join('.') : bare.split(':').slice(0, 3).join(':');
}
