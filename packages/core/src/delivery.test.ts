/** The delivery: its states, and why an attempt or a delivery fails. */
import { expect, it } from '@jest/globals';
import { ATTEMPT_ERRORS, DELIVERY_STATUSES, FAILURE_REASONS, isFinished } from './index.ts';

it('statuses are those of the interface, in an order that never changes: records hold the position', () => {
  expect(DELIVERY_STATUSES).toEqual(['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed']);
});
it('a delivery has ended when it succeeded or failed, and in no other state', () => {
  expect(DELIVERY_STATUSES.filter(isFinished)).toEqual(['succeeded', 'failed']);
});
it('errors are those of the interface; a delivery may also expire or lose its subscription', () => {
  const errors = ['timeout', 'redirect', 'status', 'address_blocked', 'dns', 'connection', 'tls'];
  expect(ATTEMPT_ERRORS).toEqual(errors);
  expect(FAILURE_REASONS).toEqual([...errors, 'expired', 'subscription_deleted']);
});
