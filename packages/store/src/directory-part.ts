/** The subscriptions of one partition, as a console keeps them in memory for its search: loads them, then follows their changes. */
import {
  HEALTH_STATES,
  type HealthState,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
} from '@posthorn/core';
import { DELETED, MAX_CHANGES } from './constants.ts';
import { RESUMING, subscriptionChangesKey, subscriptionsKey } from './keys.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** The statuses as they are stored, the first ones in the order of `SUBSCRIPTION_STATUSES`. */
const STORED_STATUSES = [...SUBSCRIPTION_STATUSES, RESUMING];
/** Records read by one script: one or two milliseconds of Redis. */
const RECORDS_AT_ONCE = 500;
/** More changes than the stream keeps, with what `MAXLEN ~` leaves over. As many as this are not followed one by one. */
const MAX_FOLLOWED = 2 * MAX_CHANGES;
/**
 * After this time all subscriptions are loaded again: a process of an earlier version announces no changes, and neither does the health of an
 * address that expires because nothing has been sent to it for the retention.
 */
const MAX_AGE_MS = 3_600_000;
/** The least time between two loads because of a wrong count. */
const MIN_AGE_MS = 60_000;

/** What a search and the order of the list need of a subscription. Never changed, only replaced. */
export interface Listed {
  readonly id: string;
  /** Url, description and id in lower case, a line each. */
  readonly text: string;
  readonly status: SubscriptionStatus;
  readonly environment: SubscriptionEnvironment;
  readonly createdAtMs: number;
  readonly health: HealthState;
  /** Since when it fails; 0 if it does not. */
  readonly failingSinceMs: number;
  /** Its place in the order `worst`: digits of its failed attempts plus 1 if it fails, 1 if it is paused, otherwise 0. */
  readonly severity: number;
}

/** Subscriptions that changed, by id; undefined for one that is gone. */
export type Changes = Map<string, Listed | undefined>;

/**
 * Returns a function that brings the partition up to date and adds to `changes` what is new since the last call. Everything that was stored
 * before the call is in it. Calls must not overlap. A call that fails leaves the rest to the next one. `now` is a monotonic clock.
 */
export function followPartition(store: Store, prefix: string, changes: Changes, now: () => number) {
  let known = new Map<string, Listed>();
  /** The last entry of the stream that was read; '' for none. */
  let position: string | undefined;
  let loadedAtMs = 0;

  const keep = (id: string, listed: Listed | undefined) => {
    changes.set(id, listed);
    if (listed) known.set(id, listed);
    else known.delete(id);
  };

  async function load(): Promise<void> {
    // First, so that what changes during the load is read again afterwards.
    const [last] = await store.redis.xrevrange(subscriptionChangesKey(prefix), '+', '-', 'COUNT', 1);
    const before = known;
    const found = new Map<string, Listed>();
    for (const status of STORED_STATUSES) {
      for (let cursor: string | undefined; cursor !== '0'; ) {
        const key = subscriptionsKey(prefix, status);
        const [next, flat] = await store.redis.zscan(key, cursor ?? '0', 'COUNT', RECORDS_AT_ONCE);
        const ids = flat.filter((_, i) => i % 2 === 0);
        for (const listed of await readListed(store, prefix, ids)) if (listed) found.set(listed.id, listed);
        cursor = next;
      }
    }
    known = found;
    for (const id of before.keys()) if (!found.has(id)) changes.set(id, undefined);
    for (const [id, listed] of found) changes.set(id, listed);
    position = last?.[0] ?? '';
    loadedAtMs = now();
  }

  const countsDiffer = (counts: readonly number[]) => {
    const own = new Map<string, number>();
    let ownFailing = 0;
    for (const { status, health } of known.values()) {
      own.set(status, (own.get(status) ?? 0) + 1);
      if (health === 'failing') ownFailing += 1;
    }
    const [resuming = 0, failing = 0] = counts.slice(SUBSCRIPTION_STATUSES.length);
    const statusesDiffer = SUBSCRIPTION_STATUSES.some(
      (status, i) => (own.get(status) ?? 0) !== (counts[i] ?? 0) + (status === 'active' ? resuming : 0),
    );
    return statusesDiffer || ownFailing !== failing;
  };

  return async (): Promise<void> => {
    if (position === undefined || now() - loadedAtMs > MAX_AGE_MS) return await load();
    const statuses = STORED_STATUSES.map((status) => ({ status }));
    const read = await runScript(store, 'readChanges', prefix, { position, limit: MAX_FOLLOWED, statuses });
    // The entry at our position is gone: later ones may be gone too. So may those before the first one that we see of a stream at its limit.
    const [first] = read.changes;
    const isBehind = position === '' ? read.changes.length >= MAX_CHANGES : first?.position !== position;
    if (isBehind || read.changes.length === MAX_FOLLOWED) return await load();
    const fresh = read.changes.slice(position === '' ? 0 : 1);
    const last = fresh.at(-1);
    if (last === undefined) {
      // Nothing was announced, so the counts agree unless a process of an earlier version wrote.
      if (now() - loadedAtMs > MIN_AGE_MS && countsDiffer(read.counts)) await load();
      return;
    }
    const ids = [...new Set(fresh.map(({ subscriptionId }) => subscriptionId))];
    const listed = await readListed(store, prefix, ids);
    for (const [i, id] of ids.entries()) keep(id, listed[i]);
    position = last.position;
  };
}

/** Reads subscriptions by id; undefined for one that is gone. */
async function readListed(store: Store, prefix: string, ids: readonly string[]): Promise<(Listed | undefined)[]> {
  const listed: (Listed | undefined)[] = [];
  for (let start = 0; start < ids.length; start += RECORDS_AT_ONCE) {
    const some = ids.slice(start, start + RECORDS_AT_ONCE);
    const found = await runScript(store, 'readListed', prefix, { ids: some.map((id) => ({ id })) });
    listed.push(...found.map((record, i) => toListed(some[i] ?? '', record)));
  }
  return listed;
}

function toListed(id: string, record: string[]): Listed | undefined {
  const [stored = '', environment, createdAt, url, description, health, failingSince, failed = ''] = record;
  if (stored === '' || stored === DELETED) return undefined;
  // The words of the lists: 100,000 subscriptions share them.
  const status =
    stored === RESUMING ? 'active' : (SUBSCRIPTION_STATUSES.find((word) => word === stored) ?? 'awaiting_validation');
  return {
    id,
    text: `${url}\n${description}\n${id}`.toLowerCase(),
    status,
    environment: SUBSCRIPTION_ENVIRONMENTS.find((word) => word === environment) ?? 'both',
    createdAtMs: Number(createdAt),
    health: HEALTH_STATES.find((word) => word === health) ?? 'unknown',
    failingSinceMs: Number(failingSince),
    severity: health === 'failing' ? 1 + failed.length : status === 'paused' ? 1 : 0,
  };
}
