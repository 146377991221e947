/** Hosts of URLs. */

/** The host of a URL as sockets and resolvers take it: an IPv6 address without its brackets. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
