/** What differs between two attempts. */
import { describe, expect, it } from '@jest/globals';
import { type Attempt, cameBackFacts, compareAttempts } from './attempt-facts.ts';

const connection = {
  ip: '192.0.2.1',
  reused: false,
  dns_ms: 2,
  connect_ms: 30,
  tls_ms: null,
  first_byte_ms: 100,
  error_code: null,
  certificate: null,
};
const failed: Attempt = {
  number: 1,
  started_at: '2026-01-01T00:00:00.000Z',
  duration_ms: 140,
  outcome: 'failed',
  status_code: 500,
  error: 'status',
  response: { headers: { server: 'old' }, body: 'no', body_truncated: false },
  connection,
};
const changesBetween = (second: Partial<Attempt>) =>
  compareAttempts(failed, { ...failed, ...second })
    .filter(({ isChanged }) => isChanged)
    .map(({ name, first, second: now }) => [name, first, now]);

describe('two attempts', () => {
  it('differ in nothing if only the times differ a little', () => {
    expect(changesBetween({ duration_ms: 189, connection: { ...connection, dns_ms: 50, first_byte_ms: 140 } })).toEqual(
      [],
    );
  });
  it('differ in status, IP, times, certificate and headers', () => {
    const certificate = { subject: 'CN=a', issuer: 'CN=b', valid_to: '2027-05-06T01:02:03.000Z' };
    const now = { ...connection, ip: '192.0.2.2', reused: true, connect_ms: null, first_byte_ms: 201, certificate };
    const second = { outcome: 'succeeded', status_code: 200, response: null, connection: now } as const;
    expect(changesBetween(second)).toEqual([
      ['Outcome', 'Failed', 'Succeeded'],
      ['Status', '500', '200'],
      ['IP', '192.0.2.1', '192.0.2.2'],
      ['Connection', 'New', 'Opened by an earlier request'],
      ['Connect', '30 ms', '–'],
      ['First byte', '100 ms', '201 ms'],
      ['server', 'old', '–'],
      ['Certificate', '–', 'CN=a'],
      ['Certificate issuer', '–', 'CN=b'],
      ['Certificate valid until', '–', '2027-05-06'],
    ]);
  });
});

describe('what came back', () => {
  it('has only the facts that are known', () => {
    expect(cameBackFacts({ response: null, connection: null })).toEqual({});
    expect(
      cameBackFacts({ response: null, connection: { ...connection, ip: null, dns_ms: null, error_code: 'ENOTFOUND' } }),
    ).toEqual({
      Error: 'ENOTFOUND',
      Connect: '30 ms',
      'First byte': '100 ms',
    });
  });
});
