/** Returns the names under which admission control (slots.ts) counts the host and the IP of an attempt. */
import { checkIp } from '@posthorn/sender';
import { LRUCache } from 'lru-cache';

const privateIps = new LRUCache<string, boolean>({ max: 10_000, memoMethod: (ip) => checkIp(ip, []) !== null });

/** Parsing a URL costs as much as signing a delivery. */
const parsed = new LRUCache<string, { host: string; port: string }>({
  max: 10_000,
  memoMethod(url) {
    const { host = url, port = '' } = URL.parse(url) ?? {};
    return { host, port };
  },
});

/** The host of a URL, with its port unless it is the default one. */
export function hostOf(url: string): string {
  return parsed.memo(url).host;
}

/**
 * A public IP counts as a whole, whatever the port. A private one, which only development may send to, counts by port: many receivers
 * run on one machine there.
 */
export function ipOf(ip: string, url: string): string {
  return privateIps.memo(ip) ? `${ip} ${parsed.memo(url).port}` : ip;
}
