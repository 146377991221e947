/** How long deliveries wait whose address's secret no key opens. */
import { expect, it } from '@jest/globals';
import { SealBroken } from '@posthorn/signing';
import { fakeClock } from '@posthorn/testing';
import { createUnreadableSecrets } from './unreadable-secrets.ts';

it('begins with a short wait again for a secret that was readable meanwhile', () => {
  const clock = fakeClock(1_000_000);
  const secrets = createUnreadableSecrets(clock, { error: () => undefined });
  const waitAfter = (ms: number) => {
    clock.advance(ms);
    return secrets.retryAtMs('sub_1', new SealBroken('no key')) - clock.now();
  };
  expect([0, 60_000, 300_000, 300_000, 600_000].map(waitAfter)).toEqual([15_000, 60_000, 300_000, 300_000, 300_000]);
  expect(waitAfter(600_001)).toBe(15_000);
});
