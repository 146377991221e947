/**
 * The subscriptions of one partition, as a console keeps them in memory for its search: loads them, then follows their
 * changes.
 */
import {
  chunksOf,
  HEALTH_STATES,
  type HealthState,
  HOUR_MS,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
} from '@posthorn/core';
import { DELETED, MAX_CHANGES } from '../constants.ts';
import { RESUMING, subscriptionChangesKey } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';

/** The statuses as they are stored, the first ones in the order of `SUBSCRIPTION_STATUSES`. */
const STORED_STATUSES = [...SUBSCRIPTION_STATUSES, RESUMING];
/** Records read by one script: one or two milliseconds of Redis. */
const RECORDS_AT_ONCE = 500;
/**
 * More changes than the stream keeps, with what `MAXLEN ~` leaves over. As many as this are not followed one by one.
 */
const MAX_FOLLOWED = 2 * MAX_CHANGES;
/**
 * After this time all subscriptions are loaded again. Nothing announces that the health of an address has expired, to
 * which nothing was sent for the retention.
 */
const MAX_AGE_MS = HOUR_MS;
/** The least time between two loads because of a wrong count. */
const MIN_AGE_MS = 60_000;

/** What a search and the order of the list need of a subscription. Never changed but for its place, only replaced. */
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
  /**
   * Its place in the order `worst`: digits of its failed attempts plus 1 if it fails, 1 if it is paused, otherwise 0.
   */
  readonly severity: number;
  /** Its place in the index, which sets it. */
  place: number;
}

/**
 * What changed, by id: the subscription when `changes` was last cleared, and now; undefined where it does not exist.
 */
export type Changes = Map<string, { before: Listed | undefined; after: Listed | undefined }>;

/**
 * Returns a function that brings the partition up to date and adds to `changes` what is new since the last call.
 * Everything that was stored before the call is in it. Calls must not overlap. A call that fails leaves the rest to the
 * next one. `now` is a monotonic clock.
 */
export function followPartition(store: Store, prefix: string, changes: Changes, now: () => number) {
  const known = new Map<string, Listed>();
  /** How many of `known` have each status, and how many are failing. */
  const own = new Map<SubscriptionStatus | 'failing', number>();
  /** The last entry of the stream that was read; '' for none. */
  let position: string | undefined;
  let loadedAtMs = 0;

  const ownOf = (name: SubscriptionStatus | 'failing') => own.get(name) ?? 0;
  const count = (listed: Listed | undefined, by: number) => {
    if (!listed) return;
    own.set(listed.status, ownOf(listed.status) + by);
    if (listed.health === 'failing') own.set('failing', ownOf('failing') + by);
  };
  const keep = (id: string, after: Listed | undefined) => {
    const before = known.get(id);
    if (isSame(before, after)) return;
    count(before, -1);
    count(after, 1);
    changes.set(id, { before: changes.has(id) ? changes.get(id)?.before : before, after });
    if (after) known.set(id, after);
    else known.delete(id);
  };

  async function load(): Promise<void> {
    // First, so that what changes during the load is read again afterwards.
    const [last] = await store.redis.xrevrange(subscriptionChangesKey(prefix), '+', '-', 'COUNT', 1);
    const ids = new Set<string>();
    for (const status of STORED_STATUSES) {
      let cursor = '0';
      do {
        const read = await runScript(store, 'scanListed', prefix, { status, cursor, count: RECORDS_AT_ONCE });
        for (const listed of read.found.map(toListed)) {
          if (!listed) continue;
          ids.add(listed.id);
          keep(listed.id, listed);
        }
        cursor = read.cursor;
      } while (cursor !== '0');
    }
    for (const id of known.keys()) if (!ids.has(id)) keep(id, undefined);
    position = last?.[0] ?? '';
    loadedAtMs = now();
  }

  const countsDiffer = (counts: readonly number[]) => {
    const [resuming = 0, failing = 0] = counts.slice(SUBSCRIPTION_STATUSES.length);
    const statusesDiffer = SUBSCRIPTION_STATUSES.some(
      (status, i) => ownOf(status) !== (counts[i] ?? 0) + (status === 'active' ? resuming : 0),
    );
    return statusesDiffer || ownOf('failing') !== failing;
  };

  /** Reads what has changed. Returns false if everything must be loaded instead. */
  async function follow(): Promise<boolean> {
    if (position === undefined || now() - loadedAtMs > MAX_AGE_MS) return false;
    const statuses = STORED_STATUSES.map((status) => ({ status }));
    const read = await runScript(store, 'readChanges', prefix, { position, limit: MAX_FOLLOWED, statuses });
    // The entry at our position is gone: later ones may be gone too. So may those before the first one that we see of a
    // stream at its limit.
    const [first] = read.changes;
    const isBehind = position === '' ? read.changes.length >= MAX_CHANGES : first?.position !== position;
    if (isBehind || read.changes.length === MAX_FOLLOWED) return false;
    const fresh = read.changes.slice(position === '' ? 0 : 1);
    const last = fresh.at(-1);
    // Each change is announced, so the counts agree. Should they not, a change was missed.
    if (last === undefined) return now() - loadedAtMs <= MIN_AGE_MS || !countsDiffer(read.counts);
    const ids = [...new Set(fresh.map(({ subscriptionId }) => subscriptionId))];
    const listed = await readListed(store, prefix, ids);
    for (const [i, id] of ids.entries()) keep(id, listed[i]);
    position = last.position;
    return true;
  }

  return async () => {
    if (await follow()) return;
    await load();
    // One that changed its status meanwhile may have been in none of the lists when they were read.
    await follow();
  };
}

/** Reads subscriptions by id; undefined for one that is gone. */
async function readListed(store: Store, prefix: string, ids: readonly string[]): Promise<(Listed | undefined)[]> {
  const listed: (Listed | undefined)[] = [];
  for (const some of chunksOf(ids, RECORDS_AT_ONCE)) {
    const records = await runScript(store, 'readListed', prefix, { ids: some.map((id) => ({ id })) });
    listed.push(...records.map(toListed));
  }
  return listed;
}

/** Where a record is that has no time of creation. No cursor has the time 0. */
const OLDEST_MS = 1;
/** Anything else would leave the order, and the cursors, of the others undefined. */
const isTime = (text: string | undefined) => /^[1-9]\d{0,14}$/.test(text ?? '');

function toListed(record: string[]): Listed | undefined {
  const [id = '', stored = '', environment, createdAt, url, description, health, failingSince, failed = ''] = record;
  if (stored === '' || stored === DELETED) return undefined;
  // The words of the lists: 100,000 subscriptions share them.
  const status =
    stored === RESUMING ? 'active' : (SUBSCRIPTION_STATUSES.find((word) => word === stored) ?? 'awaiting_validation');
  return {
    id,
    text: `${url}\n${description}\n${id}`.toLowerCase(),
    status,
    environment: SUBSCRIPTION_ENVIRONMENTS.find((word) => word === environment) ?? 'both',
    createdAtMs: isTime(createdAt) ? Number(createdAt) : OLDEST_MS,
    health: HEALTH_STATES.find((word) => word === health) ?? 'unknown',
    failingSinceMs: isTime(failingSince) ? Number(failingSince) : 0,
    severity: health === 'failing' ? 1 + failed.length : status === 'paused' ? 1 : 0,
    place: -1,
  };
}

function isSame(a: Listed | undefined, b: Listed | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.text === b.text &&
    a.status === b.status &&
    a.environment === b.environment &&
    a.createdAtMs === b.createdAtMs &&
    a.health === b.health &&
    a.failingSinceMs === b.failingSinceMs &&
    a.severity === b.severity
  );
}
