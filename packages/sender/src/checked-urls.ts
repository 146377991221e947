/** Parses and checks the URL of a request. Results are cached, because the same URLs are used again and again. */
import { atMost, bareHost } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import { type AllowedNetworks, checkUrl } from './guard.ts';
import type { SendResult } from './result.ts';

/** Where a request goes. `hostname` has no brackets. */
export interface CheckedUrl {
  origin: string;
  path: string;
  hostname: string;
  port: number;
  isSecure: boolean;
}

const MAX_URLS = 10_000;

/** Returns a function that returns the checked URL, or the result of an attempt if the guard refuses the URL. */
export function createCheckedUrls(allowed: AllowedNetworks): (url: string) => CheckedUrl | SendResult {
  const checkedUrls = new LRUCache<string, CheckedUrl>(atMost(MAX_URLS));
  return (text) => {
    const known = checkedUrls.get(text);
    if (known) return known;
    const checked = checkedUrlOf(text, allowed);
    // A refusal is not kept: what is an IP of this machine now may be one of another machine later.
    if (!('kind' in checked)) checkedUrls.set(text, checked);
    return checked;
  };
}

function checkedUrlOf(text: string, allowed: AllowedNetworks): CheckedUrl | SendResult {
  const check = checkUrl(text, allowed);
  if (!check.ok) {
    return {
      kind: 'address_blocked',
      // A saved URL is malformed only if the rules have become stricter since. An attempt has no such reason.
      reason: check.reason === 'malformed' ? 'private_address' : check.reason,
      ip: null,
    };
  }
  const { url } = check;
  const isSecure = url.protocol === 'https:';
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    hostname: bareHost(url.hostname),
    port: Number(url.port) || (isSecure ? 443 : 80),
    isSecure,
  };
}
