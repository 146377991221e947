/** The delivery: its states, and why an attempt or a delivery fails. */
import { expect, it } from '@jest/globals';
import { ATTEMPT_ERRORS, DELIVERY_STATUSES, FAILURE_REASONS, isFinished } from './index.ts';

it('keeps the order of the delivery statuses, whose positions are stored in records', () => {
  expect(DELIVERY_STATUSES).toEqual(['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed']);
});
it('considers a delivery finished only when it succeeded or failed', () => {
  expect(DELIVERY_STATUSES.filter(isFinished)).toEqual(['succeeded', 'failed']);
});
it('keeps the order of the errors of attempts, whose positions are stored, and has four more reasons of failed deliveries', () => {
  const errors = ['timeout', 'redirect', 'status', 'address_blocked', 'dns', 'connection', 'tls'];
  expect(ATTEMPT_ERRORS).toEqual(errors);
  expect(FAILURE_REASONS).toEqual([...errors, 'expired', 'subscription_deleted', 'cancelled', 'erased']);
});
