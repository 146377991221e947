/** What a URL says about where a request goes; worked out once for each URL, since the same few are sent to all day. */
import type { AllowedNetworks } from './guard.ts';
import { checkUrl } from './guard.ts';
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

/** Returns the target of a URL, or the result of an attempt where the guard refuses the URL. */
export function createTargets(allowed: AllowedNetworks): (url: string) => Target | SendResult {
  const known = new Map<string, Target | SendResult>();
  return (text) => {
    let target = known.get(text);
    if (target === undefined) {
      target = targetOf(text, allowed);
      if (known.size >= MAX_TARGETS) known.clear();
      known.set(text, target);
    }
    return target;
  };
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
