/** How errors are named, and how the attempts to an address are counted. */
import { describe, expect, it } from '@jest/globals';
import { addFailure, addSuccess, errorLabel, newAttemptRun } from './health.ts';

describe('the label of an error', () => {
  it.each([
    ['status', 500, undefined, '500'],
    ['redirect', 302, undefined, '302'],
    ['timeout', null, undefined, 'timeout'],
    ['dns', null, 'ENOTFOUND', 'dns ENOTFOUND'],
    ['tls', null, 'CERT_HAS_EXPIRED', 'tls CERT_HAS_EXPIRED'],
    ['address_blocked', null, 'private_address', 'private address'],
    ['address_blocked', null, undefined, 'address blocked'],
  ] as const)('of %s %s %s is %s', (error, statusCode, code, label) => {
    expect(errorLabel(error, statusCode, code)).toBe(label);
  });
});

describe('a run of attempts', () => {
  const failed = (label: string, sinceMs: number) => ({
    label,
    sinceMs,
    deliveryId: `dlv_${sinceMs}`,
    attemptNumber: 2,
  });
  it('counts failures and successes in a row, and errors by label', () => {
    const run = newAttemptRun();
    addFailure(run, failed('500', 1));
    addSuccess(run, 2);
    addFailure(run, failed('timeout', 3));
    addFailure(run, failed('500', 4));
    expect(run).toMatchObject({
      succeeded: 1,
      failed: 3,
      failedInARow: 2,
      succeededInARow: 0,
      firstFailedAtMs: 3,
      lastSucceededAtMs: 2,
    });
    expect([...run.errors.values()]).toEqual([
      { label: '500', count: 2, sinceMs: 1, deliveryId: 'dlv_4', attemptNumber: 2 },
      { label: 'timeout', count: 1, sinceMs: 3, deliveryId: 'dlv_3', attemptNumber: 2 },
    ]);
    addSuccess(run, 5);
    expect(run).toMatchObject({ failedInARow: 0, succeededInARow: 1, firstFailedAtMs: null });
  });
  it('knows at most 20 labels', () => {
    const run = newAttemptRun();
    for (let i = 0; i < 30; i++) addFailure(run, failed(String(i), i));
    expect([run.errors.size, run.failed]).toEqual([20, 30]);
  });
});
