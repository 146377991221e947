/** Knows the IP addresses of this machine, also public ones: a connection to them passes no firewall. */
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/** How often the interfaces are read: a machine may get another address while it runs. */
const READ_EVERY_MS = 5_000;

/**
 * Returns a function that says whether an IP address, without a zone, is one of this machine; in a container, one of
 * the container. Says no where the system does not tell, as some sandboxes forbid.
 */
export function followOwnIps(read = networkInterfaces, nowMs = () => performance.now()): (ip: string) => boolean {
  let own = new Set<string>();
  let readAtMs = Number.NEGATIVE_INFINITY;
  return (ip) => {
    if (nowMs() - readAtMs >= READ_EVERY_MS) {
      readAtMs = nowMs();
      own = ownIps(read);
    }
    return own.has(spelled(ip));
  };
}

function ownIps(read: typeof networkInterfaces): Set<string> {
  try {
    const addresses = Object.values(read()).flatMap((interfaces = []) => interfaces.map(({ address }) => address));
    return new Set(addresses.map(spelled));
  } catch {
    return new Set();
  }
}

/** The usual spelling of an address. One that is mapped into IPv6 is that of IPv4. */
function spelled(ip: string): string {
  return ipaddr.process(ip).toString();
}
