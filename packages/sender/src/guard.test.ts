/** The address guard: what it refuses in every spelling, and what it lets through. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { checkIp, checkUrl, parseNetworks } from './index.ts';

const none = parseNetworks('');
const reasonOf = (url: string, allowed = none) => {
  const check = checkUrl(url, allowed);
  return check.ok ? 'ok' : check.reason;
};

describe('IP addresses', () => {
  it.each([
    '127.0.0.1',
    '127.255.255.255',
    '0.0.0.0',
    '0.1.2.3',
    '169.254.0.1',
    '169.254.169.254',
    '::',
    '::1',
    'fe80::1',
    '::ffff:127.0.0.1',
  ])('refuses %s as local', (ip) => {
    expect(checkIp(ip, none)).toBe('local_address');
  });
  it.each([
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '100.127.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '198.51.100.7',
    '203.0.113.9',
    '198.18.0.1',
    '198.19.255.255',
    '192.88.99.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    'fc00::1',
    'fd00:ec2::254',
    'fec0::1',
    'ff02::1',
    '2001:db8::1',
    '3fff::1',
    '100::1',
    '100:0:0:1::1',
    '2001::1',
    '2001:10::1',
    '2001:20::1',
    '2002:7f00:1::',
    '2002:808:808::',
    '64:ff9b::7f00:1',
    '64:ff9b::a00:1',
    '64:ff9b:1::1',
    '::7f00:1',
    '::10.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:8.8.8.8',
    '5f00::1',
    '2001:1ff::1',
    '3fff:fff::1',
    '4000::1',
    '1000::1',
    'fe00::1',
  ])('refuses %s as private or special', (ip) => {
    expect(checkIp(ip, none)).not.toBeNull();
  });
  it.each([
    '8.8.8.8',
    '1.1.1.1',
    '172.32.0.1',
    '100.128.0.1',
    '192.0.1.1',
    '168.63.129.17',
    '2606:4700::1111',
    '2a00:1450:4007::8',
  ])('accepts %s as public', (ip) => {
    expect(checkIp(ip, none)).toBeNull();
  });
  it('refuses as local what is no IP address or has a zone', () => {
    for (const text of ['', 'localhost', 'fe80::1%eth0', '2606:4700::1111%eth0', '1.2.3', '0x7f.1']) {
      expect([text, checkIp(text, none)]).toEqual([text, 'local_address']);
    }
  });
});

describe('URLs', () => {
  it('refuses every private IPv4 address in every spelling that a URL allows', () => {
    const inPrivate = fc.oneof(
      fc.tuple(fc.constant(10), fc.nat(255), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(127), fc.nat(255), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
    );
    fc.assert(
      fc.property(inPrivate, ([a, b, c, d]) => {
        const number = ((a * 256 + b) * 256 + c) * 256 + d;
        const hex = (n: number) => n.toString(16);
        const spellings = [
          `${a}.${b}.${c}.${d}`,
          `${a}.${b}.${c}.${d}.`,
          String(number),
          `0x${hex(number)}`,
          `0${number.toString(8)}`,
          `0x${hex(a)}.0x${hex(b)}.0x${hex(c)}.0x${hex(d)}`,
          `0${a.toString(8)}.0${b.toString(8)}.0${c.toString(8)}.0${d.toString(8)}`,
          `${a}.${b}.${c * 256 + d}`,
          `${a}.${(b * 256 + c) * 256 + d}`,
          `%3${String(a)[0]}${String(a).slice(1)}.${b}.${c}.${d}`,
          `[::ffff:${a}.${b}.${c}.${d}]`,
          `[::${a}.${b}.${c}.${d}]`,
          `[64:ff9b::${a}.${b}.${c}.${d}]`,
          `[2002:${hex(a * 256 + b)}:${hex(c * 256 + d)}::]`,
        ];
        for (const host of spellings) {
          expect([host, ['private_address', 'local_address'].includes(reasonOf(`https://${host}/x`))]).toEqual([
            host,
            true,
          ]);
        }
      }),
    );
  });
  it.each([
    'http://localhost',
    'http://LOCALHOST./',
    'http://a.localhost',
    'http://printer',
    'http://x.local',
    'http://x.internal',
    'http://router.home.arpa',
    'http://home.arpa',
    'http://localhost6.localdomain6',
    'http://x.localhost..',
    'http://metadata.google.internal',
    'http://１２７.0.0.1',
    'http://①27.0.0.1',
  ])('refuses %s as local', (url) => {
    expect(['local_address', 'malformed']).toContain(reasonOf(url));
  });
  it.each([
    'ftp://example.com',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://user@example.com',
    'https://user:pw@example.com',
    'https://@example.com',
    'https://example.com:0',
    'https://example.com:99999',
    'http://example.com:22',
    'http://example.com:6667',
    'https://exa mple.com',
    'https://example.com/\n',
    '\thttps://example.com',
    'https://example.com\\@evil.com',
    'https:/example.com',
    'https:example.com',
    'https://',
    'https://.com',
    'https://a..b',
    '',
    'x',
    `https://example.com/${'a'.repeat(2048)}`,
    'http:///x',
  ])('refuses %j as malformed', (url) => {
    expect(reasonOf(url)).toBe('malformed');
  });
  it.each([
    'https://example.com',
    'http://example.com:8080/a?b=c',
    'https://xn--bcher-kva.example',
    'https://8.8.8.8/x',
    'https://[2606:4700::1111]/',
  ])('accepts %s', (url) => {
    expect(reasonOf(url)).toBe('ok');
  });
  it.each(['localhost', 'local', 'localdomain', 'internal', 'intranet', 'lan', 'home', 'corp', 'home.arpa'])(
    'refuses names that end with .%s as local',
    (suffix) => {
      expect(reasonOf(`https://printer.${suffix}/`)).toBe('local_address');
      expect(reasonOf(`https://printer.${suffix}./`)).toBe('local_address');
      // Only whole labels count.
      expect(reasonOf(`https://printer-${suffix}.example/`)).toBe('ok');
    },
  );
  it('recognizes an IP address before any number of dots', () => {
    for (const dots of ['', '.', '..', '...']) expect(reasonOf(`http://127.0.0.1${dots}/`)).toBe('local_address');
  });
  it.each(['http://./', 'http://../', 'http://.../'])('refuses %s, which has no host', (url) => {
    expect(reasonOf(url)).toBe('malformed');
  });
  it('accepts 2048 characters and no more', () => {
    const url = 'https://example.com/'.padEnd(2_048, 'a');
    expect(reasonOf(url)).toBe('ok');
    expect(reasonOf(`${url}a`)).toBe('malformed');
  });
  it.each([
    'https://example.com/@user',
    'https://example.com/https://user@host',
    'https://example.com/?u=https://user@host',
    'https://example.com/#a@b',
    'https://example.com:443/',
    'http://example.com:80/',
    'HTTPS://EXAMPLE.COM/',
  ])('accepts %s, whatever its path looks like', (url) => {
    expect(reasonOf(url)).toBe('ok');
  });
  it.each([
    ['https://exa mple.com', 'The URL has spaces, control characters or backslashes.'],
    ['https://example.com\\x', 'The URL has spaces, control characters or backslashes.'],
    ['https://example.com/\u007f', 'The URL has spaces, control characters or backslashes.'],
    ['https://example.com/\u00a0', 'The URL has spaces, control characters or backslashes.'],
    [`https://example.com/${'a'.repeat(2_048)}`, 'The URL is longer than 2048 characters.'],
    ['example.com', 'The URL cannot be parsed.'],
    ['ftp://example.com', 'The URL must begin with http:// or https://.'],
    ['http:example.com', 'The URL must have two slashes and a host.'],
    ['http:/example.com/https://example.com', 'The URL must have two slashes and a host.'],
    ['https:///example.com', 'The URL must have two slashes and a host.'],
    ['https://user@example.com', 'The URL must not carry credentials.'],
    ['https://user:password@example.com', 'The URL must not carry credentials.'],
    ['https://:password@example.com', 'The URL must not carry credentials.'],
    ['http://@example.com', 'The URL must not carry credentials.'],
    ['HTTP://:@example.com', 'The URL must not carry credentials.'],
    ['http://example.com:6667', 'Port 6667 is not one for web servers.'],
    ['https://a..b', 'The host name is not valid.'],
    ['https://.com', 'The host name is not valid.'],
    [`https://${'a'.repeat(64)}.com`, 'The host name is not valid.'],
    [`https://${'a.'.repeat(126)}com`, 'The host name is not valid.'],
    ['http://10.0.0.1', '10.0.0.1 is not a public address.'],
    ['http://[::1]', '::1 is a local address.'],
    ['http://printer', 'printer is a local name.'],
  ])('refuses %j with a message: %s', (url, message) => {
    expect(checkUrl(url, none)).toMatchObject({ ok: false, message });
  });
  it('accepts addresses and local names of exempt networks, and nothing else', () => {
    const allowed = parseNetworks('127.0.0.0/8, fd00::/8');
    expect(reasonOf('http://127.0.0.1:8080/', allowed)).toBe('ok');
    expect(reasonOf('http://[::ffff:127.0.0.1]:8080/', allowed)).toBe('ok');
    expect(reasonOf('http://localhost:8080/', allowed)).toBe('ok');
    expect(reasonOf('http://10.0.0.1/', allowed)).toBe('private_address');
    expect(checkIp('::1', allowed)).toBe('local_address');
  });
  it('accepts ports where no web server listens at exempt IPs and local names, but never port 0', () => {
    const allowed = parseNetworks('127.0.0.0/8');
    for (const url of ['http://8.8.8.8:25/', 'https://hooks.example:22/', 'http://10.0.0.1:25/'])
      expect(reasonOf(url, allowed)).toBe('malformed');
    for (const url of ['http://127.0.0.1:1/', 'http://localhost:9/']) {
      expect([reasonOf(url, allowed), reasonOf(url)]).toEqual(['ok', expect.not.stringMatching('ok')]);
    }
    expect(reasonOf('http://127.0.0.1:0/', allowed)).toBe('malformed');
  });
  it('refuses a bad list of networks by name', () => {
    const refusal = (text: string) => {
      try {
        return String(parseNetworks(text));
      } catch (error) {
        return error;
      }
    };
    for (const bad of ['nonsense', '10.0.0.0/33', '10.0.0.0']) {
      const error = refusal(`10.0.0.0/8, ${bad}`) as Error;
      expect(error.message).toBe(`"${bad}" is not a network in CIDR form, such as 10.0.0.0/8`);
      expect(error.cause).toMatchObject({ message: expect.stringContaining('ipaddr') });
    }
  });
  it('refuses networks that ipaddr.js would read as others: 0.0.0.10/8, 8.0.0.0/8', () => {
    for (const bad of ['10/8', '010.0.0.0/8', '0x0a.0.0.0/8'])
      expect(() => parseNetworks(bad)).toThrow(`"${bad}" is not a network in CIDR form`);
  });
  it('accepts a list of networks that is blank, or blank between its commas', () => {
    expect(parseNetworks(' ')).toEqual([]);
    expect(parseNetworks('10.0.0.0/8,, fd00::/8 ,')).toHaveLength(2);
  });
});
