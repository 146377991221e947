/**
 * The address guard: decides which URLs and IP addresses may be sent to, at registration, at validation and at every
 * attempt.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { followOwnIps } from './own-ips.ts';

type Ip = ipaddr.IPv4 | ipaddr.IPv6;

/** Networks exempt from the refusal of private and local addresses (`ALLOWED_PRIVATE_NETWORKS`). */
export type AllowedNetworks = readonly [Ip, number][];

type AddressRefusalReason = 'malformed' | 'private_address' | 'local_address';
type UrlCheck = { ok: true; url: URL } | { ok: false; reason: AddressRefusalReason; message: string };

/** The entries of a comma-separated list, without blank ones. */
export function listOf(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '');
}

/** Reads a comma-separated list of CIDRs. Throws an `Error` that names the first invalid one. */
export function parseNetworks(text: string): AllowedNetworks {
  return listOf(text).map((part) => {
    try {
      const network = ipaddr.parseCIDR(part);
      // It reads 10/8 as 0.0.0.10/8, and 010.0.0.0/8 as 8.0.0.0/8.
      if (isIP(part.split('/', 1)[0] ?? '') === 0) throw new Error(`ipaddr.js reads it as ${network.join('/')}`);
      return network;
    } catch (cause) {
      throw new Error(`"${part}" is not a network in CIDR form, such as 10.0.0.0/8`, { cause });
    }
  });
}

/** Ports that browsers block too, because no web server listens there (Fetch standard, "bad port"). */
const BAD_PORTS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);
const MAX_URL_LENGTH = 2048;
const LOCAL_SUFFIXES = [
  'localhost',
  'local',
  'localdomain',
  'localdomain6',
  'internal',
  'intranet',
  'lan',
  'home',
  'corp',
  'home.arpa',
];

/**
 * Checks a URL without resolving its name (specification 3.2). Local names pass if any networks are exempt, since the
 * IP addresses that they resolve to are checked at validation and at each attempt. At local names and exempt IP
 * addresses, any port passes: tests use ports where nobody listens.
 */
export function checkUrl(text: string, allowed: AllowedNetworks): UrlCheck {
  // Checked on the raw text: the URL parser would silently strip or rewrite these.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u0020\u007f-\u00a0\\]/.test(text))
    return malformed('The URL has spaces, control characters or backslashes.');
  if (text.length > MAX_URL_LENGTH) return malformed(`The URL is longer than ${MAX_URL_LENGTH} characters.`);
  const url = URL.parse(text);
  if (!url) return malformed('The URL cannot be parsed.');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return malformed('The URL must begin with http:// or https://.');
  if (!/^https?:\/\/[^/]/i.test(text)) return malformed('The URL must have two slashes and a host.');
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(text)) {
    return malformed('The URL must not carry credentials.');
  }
  // The parser removes the default ports, 80 for http and 443 for https.
  if (url.port === '0' || (BAD_PORTS.has(Number(url.port)) && !isExempt(url, allowed)))
    return malformed(`Port ${url.port} is not one for web servers.`);
  return checkHost(url, allowed);
}

/** Whether a host would be refused if no networks were exempt, but passes. */
function isExempt({ hostname }: URL, allowed: AllowedNetworks): boolean {
  const ip = ipOfHost(hostname);
  if (ip === undefined) return allowed.length > 0 && isLocalName(nameOfHost(hostname));
  return checkIp(ip, []) !== null && checkIp(ip, allowed) === null;
}

function checkHost(url: URL, allowed: AllowedNetworks): UrlCheck {
  const ip = ipOfHost(url.hostname);
  if (ip !== undefined) {
    const reason = checkIp(ip, allowed);
    if (reason === null) return { ok: true, url };
    return {
      ok: false,
      reason,
      message: `${ip} is ${reason === 'local_address' ? 'a local' : 'not a public'} address.`,
    };
  }
  const name = nameOfHost(url.hostname);
  if (!isHostName(name)) return malformed('The host name is not valid.');
  if (isLocalName(name) && allowed.length === 0) {
    return { ok: false, reason: 'local_address', message: `${name} is a local name.` };
  }
  return { ok: true, url };
}

/** The host of a URL without dots at its end. */
const nameOfHost = (hostname: string) => hostname.replace(/\.+$/, '');

const isLocalName = (name: string) =>
  !name.includes('.') || LOCAL_SUFFIXES.some((suffix) => `.${name}`.endsWith(`.${suffix}`));

/** Whether DNS can carry a name (RFC 1035, 2.3.4): labels of 1 to 63 characters, at most 253 in all. */
function isHostName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => label.length >= 1 && label.length <= 63);
}

/** Returns the IP address if the host of a URL is one, with or without a trailing dot; undefined if it is a name. */
function ipOfHost(hostname: string): string | undefined {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : nameOfHost(hostname);
  return isIP(bare) === 0 ? undefined : bare;
}

/** The only IPv6 range that is assigned for use on the internet. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');
/** Special ranges that mean this machine or its own link. */
const LOCAL_RANGES = new Set(['loopback', 'unspecified', 'linkLocal']);

/**
 * Public addresses that are private in fact: at this one, Azure serves each machine its configuration and certificates
 * (WireServer).
 */
const PRIVATE_IPS = new Set(['168.63.129.16']);

const isOwnIp = followOwnIps();

/**
 * Returns why an IP address may not be sent to; null for a public unicast address of another machine and for an address
 * of an exempt network.
 */
export function checkIp(text: string, allowed: AllowedNetworks): Exclude<AddressRefusalReason, 'malformed'> | null {
  if (isIP(text) === 0 || text.includes('%')) return 'local_address';
  const ip = ipaddr.parse(text);
  // ::ffff:10.0.0.1 reaches 10.0.0.1, so the rules for the IPv4 address apply.
  const meant = ip instanceof ipaddr.IPv6 && ip.isIPv4MappedAddress() ? ip.toIPv4Address() : ip;
  if (allowed.some((network) => isIn(meant, network) || isIn(ip, network))) return null;
  if (LOCAL_RANGES.has(meant.range()) || isOwnIp(text)) return 'local_address';
  if (PRIVATE_IPS.has(meant.toString())) return 'private_address';
  const isPublic = ip.range() === 'unicast' && (ip.kind() === 'ipv4' || isIn(ip, GLOBAL_UNICAST));
  return isPublic ? null : 'private_address';
}

function isIn(ip: Ip, [network, bits]: readonly [Ip, number]): boolean {
  return ip.kind() === network.kind() && ip.match(network as never, bits);
}

function malformed(message: string): UrlCheck {
  return { ok: false, reason: 'malformed', message };
}
