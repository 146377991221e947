/**
 * The record of a bulk replay: reads it, and encodes its filter. The scripts that start and step the replay write it.
 */
import { EVENT_TYPES, FAILURE_REASONS, REPLAY_STATUSES, type Replay, type ReplayFilter } from '@posthorn/core';
import { decodeNamed, readNamed, wordOf } from '../decode-named.ts';
import { prefixOfId, replayKey } from '../keys.ts';
import type { Store } from '../store.ts';

/** Bulk replays by id, in the order of the ids; undefined for an id that has none (any more). */
export async function loadReplays(store: Store, ids: readonly string[]): Promise<(Replay | undefined)[]> {
  return await Promise.all(
    ids.map(async (id) => {
      const record = await readNamed('replay', id, store.redis.hgetall(replayKey(prefixOfId(store, id), id)));
      return decodeNamed('replay', id, () => decodeReplay(id, record));
    }),
  );
}

function decodeReplay(id: string, record: Record<string, string>): Replay | undefined {
  if (record.subscription === undefined) return undefined;
  const count = (name: string) => Number(record[name] ?? 0);
  const [delivered, failed, cancelled] = [count('delivered'), count('failed'), count('cancelled')];
  const [replayed, counted] = [count('replayed'), count('counted')];
  return {
    id,
    subscriptionId: record.subscription,
    fromMs: Number(record.from),
    toMs: Number(record.to),
    filter: filterOfFields(record),
    batchId: record.batch ?? null,
    canary: record.canary !== undefined,
    status: wordOf(REPLAY_STATUSES, 'status', record.status),
    total: count('total'),
    replayed,
    skipped: count('skipped'),
    outcome: {
      delivered,
      failed,
      cancelled,
      waiting: counted - delivered - failed - cancelled,
      unknown: replayed - counted,
    },
    createdAtMs: Number(record.created_at),
    finishedAtMs: record.finished_at === undefined ? null : Number(record.finished_at),
    operator: record.operator ?? '',
  };
}

const FILTER_FIELDS = { eventType: 'event_type', error: 'error', failedFromMs: 'failed_from', failedToMs: 'failed_to' };

/** The fields of a filter in a replay's record. */
export function fieldsOfFilter(filter: ReplayFilter): Record<string, string | number> {
  const fields: [string, string | number | null][] = [
    [FILTER_FIELDS.eventType, filter.eventType],
    [FILTER_FIELDS.error, filter.error],
    [FILTER_FIELDS.failedFromMs, filter.failedFromMs],
    [FILTER_FIELDS.failedToMs, filter.failedToMs],
  ];
  return Object.fromEntries(fields.filter((field): field is [string, string | number] => field[1] !== null));
}

function filterOfFields(record: Record<string, string>): ReplayFilter {
  const time = (text: string | undefined) => (text === undefined ? null : Number(text));
  return {
    eventType: EVENT_TYPES.find((type) => type === record[FILTER_FIELDS.eventType]) ?? null,
    error: FAILURE_REASONS.find((reason) => reason === record[FILTER_FIELDS.error]) ?? null,
    failedFromMs: time(record[FILTER_FIELDS.failedFromMs]),
    failedToMs: time(record[FILTER_FIELDS.failedToMs]),
  };
}
