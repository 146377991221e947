/** Which network a caller's IP address stands for, where callers are counted. */
import ipaddr from 'ipaddr.js';

/** One customer of an IPv6 network has this much of it, and may call from any address in there. */
const IPV6_PREFIX_BYTES = 8;

/** An IPv4 address as it is (also inside IPv6), of an IPv6 address its /64; `unknown` for what is neither. */
export function clientNetwork(address: string): string {
  const text = address.replace(/%.*$/, '');
  if (!ipaddr.isValid(text)) return 'unknown';
  const ip = ipaddr.process(text);
  if (ip.kind() === 'ipv4') return ip.toString();
  const bytes = ip.toByteArray().map((byte, i) => (i < IPV6_PREFIX_BYTES ? byte : 0));
  return `${ipaddr.fromByteArray(bytes)}/64`;
}
