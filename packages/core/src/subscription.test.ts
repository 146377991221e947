/** A subscription's statuses, reasons and environments, and the secrets that an operator may choose. */
import { expect, it } from '@jest/globals';
import { OWN_SECRET, STATUS_REASONS, SUBSCRIPTION_ENVIRONMENTS, SUBSCRIPTION_STATUSES } from './index.ts';

it('has the statuses, status reasons and environments of the interface', () => {
  expect(SUBSCRIPTION_STATUSES).toEqual(['awaiting_validation', 'active', 'paused', 'refused']);
  expect(STATUS_REASONS).toEqual([
    'private_address',
    'local_address',
    'redirect',
    'unreachable',
    'consecutive_failures',
    'operator',
  ]);
  expect(SUBSCRIPTION_ENVIRONMENTS).toEqual(['sandbox', 'production', 'both']);
});

it('a chosen secret may have every printable character, and no other', () => {
  for (let code = 0; code < 256; code++) {
    const secret = String.fromCharCode(code).repeat(16);
    expect([code, OWN_SECRET.test(secret)]).toEqual([code, code >= 0x21 && code <= 0x7e]);
  }
});
