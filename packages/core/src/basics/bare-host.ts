/** Hosts of URLs. */

/** The host of a URL as sockets and resolvers take it: an IPv6 address without its brackets. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** The reverse: a host and a port as in a URL. */
export function withPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
