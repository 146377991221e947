/** Settings of the worker that no attempt could be made with are refused at start, by name. */
import { describe, expect, it } from '@jest/globals';
import { loadWorkerSettings } from './config.ts';

const required = {
  SECRET_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
  NOTICE_SECRET: 'notice-secret-for-tests',
};
const load = (env: Record<string, string>) => loadWorkerSettings({ ...required, ...env });

describe('NOTICE_URL', () => {
  it.each(['http://127.0.0.1:8080/notices', 'https://notices.internal/', 'http://localhost:9000'])(
    'accepts %s',
    (url) => {
      expect(load({ NOTICE_URL: url }).NOTICE_URL).toBe(url);
    },
  );
  it.each([
    'notices.example',
    'ftp://notices.example/',
    'https://notices.example:22/',
    'https://user:password@notices.example/',
    'https://notices .example/',
    'https://a..b/',
  ])('refuses %s, to which nothing can be sent', (url) => {
    expect(() => load({ NOTICE_URL: url })).toThrow(/NOTICE_URL: can't be used: /);
    expect(() => load({ NOTICE_URL: url })).not.toThrow(/password/);
  });
});

describe('DNS_SERVERS', () => {
  it('accepts a list of IP addresses and is empty by default', () => {
    expect(load({}).DNS_SERVERS).toEqual([]);
    expect(load({ DNS_SERVERS: '10.0.0.2, 10.0.0.3:5353' }).DNS_SERVERS).toEqual(['10.0.0.2', '10.0.0.3:5353']);
    expect(() => load({ DNS_SERVERS: 'ns.example' })).toThrow(/DNS_SERVERS: must be IP addresses/);
  });
});

it.each(['ATTEMPT_TIMEOUT', 'SHUTDOWN_GRACE'] as const)('%s is refused if it is longer than a timer can be', (name) => {
  expect(load({ [name]: '24d' })[name]).toBe(24 * 86_400_000);
  expect(() => load({ [name]: '25d' })).toThrow(`${name}: must be at most 24d`);
});
