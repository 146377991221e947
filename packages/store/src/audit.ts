/** The audit trail in Redis: one stream per partition, written in one step with the change, read newest first. */
import { randomBytes } from 'node:crypto';
import { type AuditActor, type AuditEntry, DAY_MS } from '@posthorn/core';
import { decodeNamed } from './decode-named.ts';
import { auditKey, partitionPrefix } from './keys.ts';
import {
  type Filter,
  matches,
  newestAfter,
  type Page,
  type PageRequest,
  readPage,
  type Source,
  type TimeRange,
} from './lists/page.ts';
import { readStreamBack } from './lists/stream.ts';
import { runScript } from './scripts.ts';
import { allPartitions, type Store } from './store.ts';

export interface AuditRecord extends AuditEntry {
  id: string;
  atMs: number;
}

export type AuditFilter = TimeRange &
  Filter<AuditRecord, 'subscriptionId' | 'operator' | 'action'> & {
    /** The id of a subscription, a delivery, a bulk replay or an erasure that the entry names. */
    target?: string | undefined;
    /** Only what an operator did, or only what Posthorn did by itself. */
    actor?: AuditActor | undefined;
  };

/** Writes an audit entry that belongs to no change of a subscription: a sign-in, for example. */
export async function appendAudit(store: Store, auditEntry: AuditEntry, nowMs: number): Promise<void> {
  const values = { entryId: randomBytes(6).toString('base64url'), nowMs, retentionMs: store.retentionMs, auditEntry };
  await runScript(store, 'appendAudit', partitionPrefix(store, 0), values);
}

/** A page of the audit trail, which reaches back to the retention. Throws `BadCursor`. */
export async function listAudit(
  store: Store,
  filter: AuditFilter,
  request: PageRequest,
  nowMs: number,
): Promise<Page<AuditRecord>> {
  const range = {
    fromMs: Math.max(0, filter.fromMs ?? 0, nowMs - store.retentionMs),
    toMs: Math.max(0, filter.toMs ?? Number.MAX_SAFE_INTEGER),
  };
  const { subscriptionId, operator, action, target, actor } = filter;
  const isWanted = (entry: AuditRecord) =>
    range.fromMs <= entry.atMs &&
    entry.atMs <= range.toMs &&
    matches(entry, { subscriptionId, operator, action }) &&
    (target === undefined || targetsOf(entry).includes(target)) &&
    (actor === undefined || actor === (entry.operator === null ? 'posthorn' : 'operator'));
  return await readPage(auditSource(store, range), decodeAll, isWanted, request);
}

/** The ids that an entry names. A replayed delivery is followed by the new one. */
function targetsOf({ subscriptionId, deliveryId, replayId, detail }: AuditRecord): unknown[] {
  return [subscriptionId, deliveryId, replayId, detail?.new_delivery_id, detail?.erasure_id];
}

/**
 * How long after its time an entry may stand in its stream. One of a process whose clock is behind may follow one of a
 * process whose clock was ahead, and a process whose clock is wrong by more than a day writes nothing.
 */
const MAX_LATE_MS = 2 * DAY_MS;

/**
 * The entries of all partitions' streams, newest first, with some after the range. The item of a candidate is its id
 * and its JSON.
 */
function auditSource(store: Store, range: { fromMs: number; toMs: number }): Source {
  const read: Source['read'] = async (after, count) => {
    const newest = range.toMs + MAX_LATE_MS;
    const start = Math.min(newest, after?.ms ?? newest);
    const parts = await Promise.all(
      allPartitions(store).map(async (partition) => {
        const from = after && start === after.ms ? `${after.ms}-${Number(after.id.split('-')[0])}` : `${start}`;
        const key = auditKey(partitionPrefix(store, partition));
        // One more than needed: the first may be the last entry of the previous page.
        const entries = await readStreamBack(store, key, { start: from, oldestMs: range.fromMs, count: count + 1 });
        return entries.map(([entryId, fields]) => {
          const [ms, sequence = '0'] = entryId.split('-');
          const id = `${sequence.padStart(8, '0')}-${String(partition).padStart(3, '0')}`;
          return { ms: Number(ms), id, item: `${ms}-${id} ${fields[1]}` };
        });
      }),
    );
    return newestAfter(parts.flat(), after, count);
  };
  return { idForm: /^\d{8,16}-\d{3}$/, read };
}

async function decodeAll(items: string[]): Promise<AuditRecord[]> {
  return items.map((item) => {
    const space = item.indexOf(' ');
    const id = `aud_${item.slice(0, space)}`;
    return decodeNamed('audit entry', id, () => {
      const stored = JSON.parse(item.slice(space + 1)) as AuditEntry & { atMs?: number };
      const { operator = null, atMs = Number.parseInt(item, 10), ...entry } = stored;
      return { id, atMs, operator, ...entry };
    });
  });
}
