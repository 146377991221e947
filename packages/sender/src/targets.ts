/** Parses and checks the URL of a request. Results are cached, because the same URLs are used again and again. */
import { atMost, knownOrNew } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import { type AllowedNetworks, checkUrl } from './guard.ts';
import type { SendResult } from './result.ts';

/** Where a request goes. `hostname` has no brackets. */
export interface Target {
  origin: string;
  path: string;
  hostname: string;
  port: number;
  isSecure: boolean;
}

const MAX_TARGETS = 10_000;

/** Returns a function that returns the target of a URL, or the result of an attempt if the guard refuses the URL. */
export function createTargets(allowed: AllowedNetworks): (url: string) => Target | SendResult {
  const targets = new LRUCache<string, Target | SendResult>(atMost(MAX_TARGETS));
  return (text) => knownOrNew(targets, text, (url) => targetOf(url, allowed));
}

function targetOf(text: string, allowed: AllowedNetworks): Target | SendResult {
  const check = checkUrl(text, allowed);
  if (!check.ok) {
    return {
      kind: 'address_blocked',
      reason: check.reason === 'malformed' ? 'private_address' : check.reason,
      ip: null,
    };
  }
  const { url } = check;
  const isSecure = url.protocol === 'https:';
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (isSecure ? 443 : 80),
    isSecure,
  };
}
