/** Returns the names under which admission control (slots.ts) counts the host and the IP of an attempt. */
import { atMost, knownOrNew } from '@posthorn/core';
import { ipNetwork } from '@posthorn/http';
import { checkIp } from '@posthorn/sender';
import { LRUCache } from 'lru-cache';

const MAX_KNOWN = 10_000;
const ips = new LRUCache<string, { network: string; isPrivate: boolean }>(atMost(MAX_KNOWN));
/** Parsing a URL costs as much as signing a delivery. */
const parsed = new LRUCache<string, { host: string; port: string }>(atMost(MAX_KNOWN));

/** The host of a URL, with its port unless it is the default one. */
export function hostOf(url: string): string {
  return knownOrNew(parsed, url, parse).host;
}

/**
 * A public IP counts as a whole, whatever the port, and an IPv6 address as its /64: its owner usually has all of that.
 * A private IP, which only development may send to, counts by port: many receivers run on one machine there.
 */
export function ipOf(ip: string, url: string): string {
  const { network, isPrivate } = knownOrNew(ips, ip, look);
  return isPrivate ? `${ip} ${knownOrNew(parsed, url, parse).port}` : network;
}

function parse(url: string): { host: string; port: string } {
  const { host = url, port = '' } = URL.parse(url) ?? {};
  return { host, port };
}

function look(ip: string): { network: string; isPrivate: boolean } {
  return { network: ipNetwork(ip), isPrivate: checkIp(ip, []) !== null };
}
