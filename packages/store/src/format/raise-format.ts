/** Raises the stored format once no process needs the one in force any more, and says what the raise waits for. */
import { installationKey } from '../keys.ts';
import { execAll } from '../redis/exec-all.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { aliveWorkers } from '../workers.ts';
import {
  decideRaise,
  type FormatRecord,
  GONE_AFTER_MS,
  isLookedAt,
  PROCESS_FIELD,
  processesBefore,
  type RaiseDecision,
  READABLE,
  type RegisteredProcess,
} from './formats.ts';

/** A worker of 0.1.0 is removed from the list of workers after this. */
const WORKER_SIGN_MS = 60_000;

interface FoundRecord extends FormatRecord {
  processes: (RegisteredProcess & { id: string })[];
  /** What the last look found. */
  raisesAtMs: number | undefined;
}

async function readRecord(store: Store): Promise<FoundRecord> {
  const { fields, ...read } = await runScript(store, 'readInstallation', installationKey(store.prefix), {});
  const numberIn = (field: string) => (fields.has(field) ? Number(fields.get(field)) : undefined);
  const processes = [...fields].filter(([field]) => field.startsWith(PROCESS_FIELD));
  return {
    ...read,
    raisedBy: fields.get('raised_by'),
    registrations: fields.get('registrations') ?? '',
    processes: processes.map(([field, text]) => ({ id: field.slice(PROCESS_FIELD.length), ...JSON.parse(text) })),
    settledSinceMs: numberIn('settled_since'),
    lookedAtMs: numberIn('looked_at'),
    checkedSinceMs: numberIn('checked_since'),
    probedAtMs: numberIn('checked_at'),
    hasIngestSign: fields.has('event_search'),
    raisesAtMs: numberIn('raises_at'),
  };
}

/**
 * Looks once, and raises the format by one if nothing has needed the present one for `windowMs`. To be called more
 * often than once a minute, by one process at a time; two at once do no harm. Returns the decision, and the format in
 * force if it was raised. `readable` is for tests.
 */
export async function advanceFormat(
  store: Store,
  { windowMs, version, readable = READABLE }: { windowMs: number; version: string; readable?: typeof READABLE },
): Promise<RaiseDecision & { raisedTo?: number }> {
  const key = installationKey(store.prefix);
  const record = await readRecord(store);
  const gone = record.processes.filter(({ seenAtMs }) => record.nowMs - seenAtMs >= GONE_AFTER_MS);
  if (gone.length > 0) await store.redis.hdel(key, ...gone.map(({ id }) => PROCESS_FIELD + id));
  const oldWorkers = record.format < readable.newest ? await unregisteredWorkers(store, record) : [];
  const decision = decideRaise(record, { newest: readable.newest, windowMs, oldWorkers });
  if (decision.kind === 'due') {
    const values = { from: record.format, registrations: record.registrations, version };
    const isRaised = await runScript(store, 'raiseFormat', key, values);
    return isRaised ? { ...decision, raisedTo: record.format + 1 } : decision;
  }
  if (decision.kind !== 'newest') await noteDecision(store, record, decision);
  return decision;
}

/** The running workers of 0.1.0, as `host:pid`. */
async function unregisteredWorkers(store: Store, { processes }: FoundRecord): Promise<string[]> {
  const registered = new Set(processes.map(({ id }) => id));
  const workers = await aliveWorkers(store, WORKER_SIGN_MS);
  return workers.filter(({ id }) => !registered.has(id)).map(({ host, pid }) => `${host}:${pid}`);
}

/** Stores a decision, for the next look, and the time of the raise for consoles. */
async function noteDecision(
  store: Store,
  record: FormatRecord,
  decision: Exclude<RaiseDecision, { kind: 'newest' | 'due' }>,
): Promise<void> {
  const key = installationKey(store.prefix);
  const change = store.redis.multi();
  const set = (fields: Record<string, string | number>) => change.hset(key, { ...fields, looked_at: record.nowMs });
  if (decision.kind === 'waiting') {
    change.hdel(key, 'settled_since', 'checked_since', 'raises_at');
    set({});
  } else if (decision.kind === 'settling') {
    change.hdel(key, 'checked_since');
    set({ settled_since: decision.sinceMs, raises_at: decision.raisesAtMs });
  } else {
    // An ingest process of 0.1.0 would write it again within a minute.
    if (decision.checkedSinceMs === record.nowMs) change.hdel(key, 'event_search');
    const { sinceMs, checkedSinceMs, raisesAtMs } = decision;
    set({ settled_since: sinceMs, checked_since: checkedSinceMs, raises_at: raisesAtMs });
  }
  await execAll(change);
}

/** The stored format, as operators see it. */
interface FormatState {
  /** In which new data are written. */
  current: number;
  /** The newest that this process knows; the one in force becomes this one. */
  newest: number;
  /** The oldest in which records may be stored. */
  oldestStored: number;
  /** The running processes that keep the format from being raised. */
  waitsFor: string[];
  /** When it is raised if nothing changes, by the clock of Redis; undefined if that is not known. */
  raisesAtMs: number | undefined;
  processes: (RegisteredProcess & { id: string })[];
}

/**
 * Says what the raise waits for, also while nobody looks: a worker of 0.1.0 that does the maintenance keeps its lease
 * until it stops, so no worker of this release has a turn.
 */
export async function readFormat(store: Store): Promise<FormatState> {
  const record = await readRecord(store);
  const { format: current, oldestStored, processes } = record;
  const newest = Math.max(READABLE.newest, current);
  const state = { current, newest, oldestStored, processes };
  if (current === newest) return { ...state, waitsFor: [], raisesAtMs: undefined };
  const waitsFor = processesBefore(record, await unregisteredWorkers(store, record));
  const isComing = waitsFor.length === 0 && isLookedAt(record);
  return { ...state, waitsFor, raisesAtMs: isComing ? record.raisesAtMs : undefined };
}
