/** Maps an IP address to the network that limits apply to. */
import ipaddr from 'ipaddr.js';

/** A customer of an IPv6 network usually has a /64, and can use every address in it. */
const IPV6_PREFIX_BYTES = 8;

/** An address in `X-Forwarded-For` as some proxies write it: with a port, and IPv6 in brackets. */
const WITH_PORT = /^(?:([\d.]+):\d+|\[([^\]]+)\](?::\d+)?)$/;

/**
 * Returns an IPv4 address unchanged (also one mapped into IPv6), the /64 of an IPv6 address, or `unknown` for other
 * text.
 */
export function ipNetwork(address: string): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(address) ?? [];
  const text = (ipv4 ?? ipv6 ?? address).replace(/%.*$/, '');
  if (!ipaddr.isValid(text)) return 'unknown';
  const ip = ipaddr.process(text);
  if (ip.kind() === 'ipv4') return ip.toString();
  const bytes = ip.toByteArray().map((byte, i) => (i < IPV6_PREFIX_BYTES ? byte : 0));
  return `${ipaddr.fromByteArray(bytes)}/64`;
}
