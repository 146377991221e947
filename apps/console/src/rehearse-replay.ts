/**
 * Rehearses bulk replays: says how many deliveries would go to which address, how long that takes, and what speaks
 * against it.
 */
import { type AddressHealth, CANARY_DELIVERIES, FAST_MS, UNKNOWN_HEALTH } from '@posthorn/core';
import type * as api from '@posthorn/operator-api';
import {
  aliveWorkers,
  type Rehearsal,
  type ReplayScope,
  readAddressAttempts,
  readHealth,
  rehearseReplay,
  type Store,
  type StoredSubscription,
} from '@posthorn/store';
import { notActive } from './not-active.ts';

/** Failed deliveries that one rehearsal looks at: about a second. They are divided among its addresses. */
const MAX_REHEARSED = 10_000;

type Address = api.Rehearsal['addresses'][number];
type Warning = Address['warnings'][number];

/** Returns what a bulk replay of these addresses would do. Changes nothing. */
export async function rehearse(
  store: Store,
  addresses: readonly StoredSubscription[],
  scope: Omit<ReplayScope, 'subscriptionId'> & { canary: boolean },
  nowMs: number,
): Promise<api.Rehearsal> {
  const ids = addresses.map(({ id }) => id);
  const [healths, workers] = await Promise.all([readHealth(store, ids, nowMs), aliveWorkers(store)]);
  const slots = workers.reduce((all, { addressConcurrency }) => all + addressConcurrency, 0);
  const limit = Math.ceil(MAX_REHEARSED / addresses.length);
  const rehearsed: Address[] = [];
  const waits = new Map<string, number>();
  for (const [i, address] of addresses.entries()) {
    const found = await rehearseReplay(store, { ...scope, subscriptionId: address.id }, limit, nowMs);
    const { meanMs } = await readAddressAttempts(store, address.id, nowMs);
    const one = serializeAddress(address, found, { slots, meanMs, canary: scope.canary });
    const warnings = warningsAbout(address, found, healths[i] ?? UNKNOWN_HEALTH);
    rehearsed.push({ ...one, warnings });
    // Addresses of one host that are not fast share the slots of the host: estimate as if they took turns.
    const slotOwner = meanMs !== null && meanMs >= FAST_MS ? new URL(address.url).host : address.id;
    waits.set(slotOwner, (waits.get(slotOwner) ?? 0) + (one.expected_s ?? 0));
  }
  const sum = (of: (address: Address) => number) => rehearsed.reduce((all, address) => all + of(address), 0);
  return {
    count: sum(({ count }) => count),
    is_complete: rehearsed.every(({ is_complete }) => is_complete),
    canaries: sum(({ canaries }) => canaries),
    skipped: sum(({ skipped }) => skipped),
    expected_s: rehearsed.some(({ expected_s }) => expected_s === null) ? null : Math.max(...waits.values()),
    addresses: rehearsed,
  };
}

function serializeAddress(
  { id, url, description, status }: StoredSubscription,
  { count, underWay, tooLate, isComplete }: Rehearsal,
  { slots, meanMs, canary }: { slots: number; meanMs: number | null; canary: boolean },
): Omit<Address, 'warnings'> {
  const rate = meanMs === null || slots === 0 ? null : (1_000 * slots) / Math.max(1, meanMs);
  return {
    subscription_id: id,
    url,
    description,
    status,
    count,
    is_complete: isComplete,
    canaries: canary ? Math.min(CANARY_DELIVERIES, count) : 0,
    skipped: underWay + tooLate,
    rate_per_s: rate === null ? null : Math.round(rate * 10) / 10,
    expected_s: count === 0 ? 0 : rate === null ? null : Math.ceil(count / rate),
  };
}

function warningsAbout(
  { status }: StoredSubscription,
  { count, underWay, tooLate, error }: Rehearsal,
  health: AddressHealth,
): Warning[] {
  const warnings: Warning[] = [];
  if (status !== 'active') warnings.push({ kind: 'not_active', message: `${notActive('The address')}.` });
  const label = health.error?.label;
  const isSame = error !== null && label !== undefined && (label === error || label.startsWith(`${error} `));
  if (count > 0 && health.failedInARow > 0 && isSame)
    warnings.push({ kind: 'same_error', message: `Its attempts still fail as these deliveries did: ${label}.` });
  else if (count > 0 && health.state === 'failing')
    warnings.push({ kind: 'failing', message: `Its attempts fail${label === undefined ? '' : `: ${label}`}.` });
  if (tooLate > 0)
    warnings.push({
      kind: 'too_late',
      message: `${tooLate} failed too long ago, or ${tooLate === 1 ? 'its' : 'their'} event has expired or was erased: skipped.`,
    });
  if (underWay > 0)
    warnings.push({
      kind: 'under_way',
      message: `${underWay} ${underWay === 1 ? 'is on its way again, or has' : 'are on their way again, or have'} arrived by a replay: skipped.`,
    });
  return warnings;
}
