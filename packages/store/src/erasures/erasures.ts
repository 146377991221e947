/** The records of erasures: begins, confirms and ends them. erasure-events.ts finds and erases the events. */
import { randomUUID } from 'node:crypto';
import {
  type AuditEntry,
  type Environment,
  ERASURE_FIELDS,
  ERASURE_STATUSES,
  type Erasure,
  type ErasureCounts,
  type ErasureField,
  type ErasureStatus,
  mayEndUnsent,
  newErasureId,
  UNSENT_CHOICES,
  type UnsentChoice,
} from '@posthorn/core';
import { GRACE_MS } from '../constants.ts';
import { decodeNamed, readNamed, wordOf } from '../decode-named.ts';
import * as keys from '../keys.ts';
import { unlessUnavailable } from '../redis/storage-errors.ts';
import { fieldList, runScript, type ScriptResult } from '../scripts.ts';
import type { Store } from '../store.ts';
import { readUnreadable } from './erasure-events.ts';

/** Erasures that have not ended, at most: each event of a pass is compared with all of them. */
export const MAX_OPEN_ERASURES = 20;

export interface NewErasure {
  field: ErasureField;
  environment: Environment | undefined;
  unsent: UnsentChoice;
  valueHmac: string;
  /** Seals the value for the erasure with this id. */
  seal: (erasureId: string) => string;
  /** Whether it needs no other confirmation. */
  isConfirmed: boolean;
}

const first = (store: Store) => keys.partitionPrefix(store, 0);

/** Begins an erasure; maintenance does the work. Returns undefined if `MAX_OPEN_ERASURES` have not ended yet. */
export async function startErasure(
  store: Store,
  { field, environment, unsent, valueHmac, seal, isConfirmed }: NewErasure,
  nowMs: number,
  operator: string,
): Promise<Erasure | undefined> {
  const id = newErasureId();
  const status: ErasureStatus = isConfirmed ? 'running' : 'counting';
  const confirmed = isConfirmed ? { confirmed_at: nowMs, confirmed_by: operator } : {};
  const record = {
    status,
    field,
    ...(environment !== undefined && { environment }),
    unsent,
    hmac: valueHmac,
    sealed: seal(id),
    operator,
    created_at: nowMs,
    ...confirmed,
  };
  const erasure = decodeErasure(id, stringsOf(record), NO_COUNTS, NONE_UNREADABLE);
  const isStarted = await runScript(store, 'startErasure', first(store), {
    id,
    maxOpen: MAX_OPEN_ERASURES,
    nowMs,
    // An erasure may wait for a delivery that is held, and is kept after its end.
    listedMs: 3 * store.retentionMs + GRACE_MS,
    retentionMs: store.retentionMs,
    auditEntry: isConfirmed ? auditEntry('erasure.started', operator, erasure) : undefined,
    fields: fieldList(record),
  });
  return isStarted ? erasure : undefined;
}

/** Whether an erasure was changed as wanted. If not, it is gone, or has this status, from which it can't be. */
type Advanced = ScriptResult<'advanceErasure'>;

/** Confirms an erasure that counts or has counted, or ends the deliveries of a confirmed one that waits. */
export async function confirmErasure(
  store: Store,
  erasure: Erasure,
  unsent: UnsentChoice,
  nowMs: number,
  operator: string,
): Promise<Advanced> {
  const common = { nowMs, auditEntry: auditEntry('erasure.started', operator, { ...erasure, unsent }) };
  if (unsent === 'end' && mayEndUnsent(erasure))
    return await advance(store, erasure, {
      ...common,
      from: [erasure.status],
      to: erasure.status,
      fields: { unsent },
    });
  return await advance(store, erasure, {
    ...common,
    from: ['counting', 'counted'],
    to: 'running',
    fields: { unsent, confirmed_at: nowMs, confirmed_by: operator },
  });
}

/** Cancels an erasure that is not confirmed, and forgets what it has found. */
export async function cancelErasure(store: Store, erasure: Erasure, nowMs: number): Promise<Advanced> {
  return await end(store, erasure, { from: ['counting', 'counted'], to: 'cancelled', nowMs });
}

/** Cancels an erasure that is running: nothing more is erased, and some seconds later it has the status `cancelled`. */
export async function cancelRunningErasure(
  store: Store,
  erasure: Erasure,
  nowMs: number,
  operator: string,
): Promise<Advanced> {
  const fields = { cancelled_at: nowMs, cancelled_by: operator };
  return await advance(store, erasure, { from: ['running'], to: 'running', nowMs, fields });
}

/** Ends an erasure with its counts, and forgets what it has found. */
async function end(store: Store, erasure: Erasure, change: Omit<Advance, 'fields'>): Promise<Advanced> {
  const fields = { finished_at: change.nowMs, ...fieldsOfCounts(erasure.counts) };
  const result = await advance(store, erasure, { ...change, fields });
  // What is not forgotten, because a partition is unavailable, expires.
  if (result === 'advanced') await forgetProgress(store, erasure.id).catch(unlessUnavailable);
  return result;
}

/**
 * Gives an erasure its next status (core's `nextErasureStatus`). The last one has its counts, and an audit entry. Safe
 * to repeat.
 */
export async function settleErasure(
  store: Store,
  erasure: Erasure,
  to: ErasureStatus,
  nowMs: number,
): Promise<boolean> {
  switch (to) {
    case 'cancelled': {
      if (erasure.status !== 'running') return (await cancelErasure(store, erasure, nowMs)) === 'advanced';
      const entry = auditEntry('erasure.cancelled', erasure.cancelledBy, erasure);
      return (await end(store, erasure, { from: ['running'], to, nowMs, auditEntry: entry })) === 'advanced';
    }
    case 'done': {
      const entry = auditEntry('erasure.done', erasure.confirmedBy, erasure);
      return (await end(store, erasure, { from: ['running', 'waiting'], to, nowMs, auditEntry: entry })) === 'advanced';
    }
    default: {
      const fields: Record<string, number> = to === 'counted' ? { counted_at: nowMs } : {};
      return (await advance(store, erasure, { from: [erasure.status], to, nowMs, fields })) === 'advanced';
    }
  }
}

/** A change of an erasure's status, only from one of those in `from`, and of other fields. */
interface Advance {
  from: readonly ErasureStatus[];
  to: ErasureStatus;
  nowMs: number;
  auditEntry?: AuditEntry | undefined;
  fields?: Record<string, string | number>;
}

async function advance(
  store: Store,
  { id }: Erasure,
  { from, to, nowMs, auditEntry, fields = {} }: Advance,
): Promise<Advanced> {
  return await runScript(store, 'advanceErasure', first(store), {
    id,
    decision: randomUUID(),
    from: ` ${from.join(' ')} `,
    to,
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry,
    fields: fieldList(fields),
  });
}

/** What the audit trail says of an erasure: never the value. */
function auditEntry(
  action: 'erasure.started' | 'erasure.done' | 'erasure.cancelled',
  operator: string | null,
  erasure: Erasure,
): AuditEntry {
  const { id, field, environment, valueHmac, unsent, counts, confirmedAtMs } = erasure;
  const confirmedAt = confirmedAtMs === null ? {} : { confirmed_at: new Date(confirmedAtMs).toISOString() };
  const scope = { erasure_id: id, field, environment: environment ?? 'both', value_hmac: valueHmac, unsent };
  const isCounted = action !== 'erasure.started' || erasure.status === 'counted';
  return { operator, action, detail: { ...scope, ...confirmedAt, ...(isCounted && fieldsOfCounts(counts)) } };
}

/** What is known of the events in the partitions is not needed any more. What a crash leaves of it expires. */
async function forgetProgress(store: Store, id: string): Promise<void> {
  await Promise.all(
    keys
      .allPrefixes(store)
      .map((prefix) => store.redis.unlink(keys.erasureProgressKey(prefix, id), keys.erasureEventsKey(prefix, id))),
  );
}

/** The ids of the erasures that have not ended. */
export async function openErasures(store: Store): Promise<string[]> {
  return await store.redis.smembers(keys.openErasuresKey(first(store)));
}

/** Removes an erasure whose record is gone, as after a failover, from the open ones. */
export async function removeOpenErasure(store: Store, id: string): Promise<void> {
  await store.redis.srem(keys.openErasuresKey(first(store)), id);
}

/**
 * Erasures by id, in the order of the ids, with what has been counted so far; undefined for an id that has none (any
 * more).
 */
export async function loadErasures(store: Store, ids: readonly string[]): Promise<(Erasure | undefined)[]> {
  return await Promise.all(
    ids.map(async (id) => {
      const record = await readRecord(store, id);
      if (!record) return undefined;
      if (record.finished_at !== undefined) return decodeErasure(id, record, countsOfFields(record), NONE_UNREADABLE);
      const [counts, unreadable] = await Promise.all([readCounts(store, id), readUnreadable(store, id)]);
      return decodeErasure(id, record, counts, unreadable);
    }),
  );
}

/** An erasure without what is in other keys; undefined if it does not exist (any more). */
export async function loadUncounted(
  store: Store,
  id: string,
): Promise<Omit<Erasure, 'counts' | 'unreadable'> | undefined> {
  const record = await readRecord(store, id);
  return record && decodeErasure(id, record, NO_COUNTS, NONE_UNREADABLE);
}

async function readRecord(store: Store, id: string): Promise<Record<string, string> | undefined> {
  const record = await readNamed('erasure', id, store.redis.hgetall(keys.erasureKey(first(store), id)));
  return record.status === undefined ? undefined : record;
}

/** The counts of an open erasure: the sum over all partitions. */
async function readCounts(store: Store, id: string): Promise<ErasureCounts> {
  const records = await Promise.all(
    keys.allPrefixes(store).map((prefix) => store.redis.hgetall(keys.erasureProgressKey(prefix, id))),
  );
  const sum = { ...NO_COUNTS };
  for (const counts of records.map(countsOfFields)) for (const name of COUNT_NAMES) sum[name] += counts[name];
  return sum;
}

const COUNT_FIELDS = {
  events: 'events',
  deliveries: 'deliveries',
  unsent: 'unsent_found',
  erasedEvents: 'erased_events',
  erasedDeliveries: 'erased_deliveries',
  endedDeliveries: 'ended_deliveries',
  erasedResponses: 'erased_responses',
} as const satisfies Record<keyof ErasureCounts, string>;
const COUNT_NAMES = Object.keys(COUNT_FIELDS) as (keyof ErasureCounts)[];
const NO_COUNTS = countsOfFields({});
const NONE_UNREADABLE: Erasure['unreadable'] = { events: 0, ids: [] };

function countsOfFields(record: Record<string, string>): ErasureCounts {
  const counts = COUNT_NAMES.map((name) => [name, Number(record[COUNT_FIELDS[name]] ?? 0)]);
  return Object.fromEntries(counts) as Record<keyof ErasureCounts, number>;
}

function fieldsOfCounts(counts: ErasureCounts): Record<string, number> {
  return Object.fromEntries(COUNT_NAMES.map((name) => [COUNT_FIELDS[name], counts[name]]));
}

function stringsOf(record: Record<string, string | number>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([field, value]) => [field, String(value)]));
}

function decodeErasure(
  id: string,
  record: Record<string, string>,
  counts: ErasureCounts,
  unreadable: Erasure['unreadable'],
): Erasure {
  const time = (text: string | undefined) => (text === undefined ? null : Number(text));
  return decodeNamed('erasure', id, () => ({
    id,
    field: wordOf(ERASURE_FIELDS, 'field', record.field),
    environment: record.environment as Environment | undefined,
    status: wordOf(ERASURE_STATUSES, 'status', record.status),
    unsent: wordOf(UNSENT_CHOICES, 'unsent', record.unsent),
    valueHmac: record.hmac ?? '',
    sealedValue: record.sealed,
    counts,
    unreadable,
    operator: record.operator ?? '',
    confirmedBy: record.confirmed_by ?? null,
    createdAtMs: Number(record.created_at),
    countedAtMs: time(record.counted_at),
    confirmedAtMs: time(record.confirmed_at),
    cancelledAtMs: time(record.cancelled_at),
    cancelledBy: record.cancelled_by ?? null,
    finishedAtMs: time(record.finished_at),
  }));
}
