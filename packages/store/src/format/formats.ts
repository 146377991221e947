/**
 * The stored formats that this release reads, and whether the one in force may be raised. docs/upgrades.md explains
 * both to operators.
 */

/** What a release reads. It writes the format in force, or an older one while it does not know that it was raised. */
export interface FormatRange {
  oldest: number;
  newest: number;
}

/** Every stored format, the first one is 1: the release that wrote it first. */
export const formatReleases: readonly string[] = ['0.1.0', '0.2.0'];

/** The format of an installation that does not say: release 0.1.0 stored none. */
export const FIRST_FORMAT = 1;

/** What this release reads. */
export const READABLE: FormatRange = { oldest: FIRST_FORMAT, newest: formatReleases.length };

/**
 * Since this format: an event and its only delivery in a joint record (event-record.ts), jobs without data, the
 * succeeded deliveries in a stream (sources.ts), and short ids in the streams of addresses.
 */
export const COMPACT_FORMAT = 2;

/**
 * A process without a sign of life for this long is gone. A process trusts what it knows for much shorter (`TRUST_MS`).
 */
export const GONE_AFTER_MS = 600_000;
/** A window during which nobody looked for this long begins again: an earlier release may have run meanwhile. */
const MAX_GAP_MS = 60_000;
/** The shortest window: processes that have just started have said so. */
const MIN_WINDOW_MS = 60_000;
/** Ingest of 0.1.0 writes `event_search` every 60 s. */
const INGEST_SIGN_MS = 150_000;
/** Readiness probes are more frequent. */
const PROBE_SIGN_MS = 120_000;

/** Begins the field of a process in the record of the installation; its id follows. */
export const PROCESS_FIELD = 'process:';

/** A process as it is registered in the record of the installation. */
export interface RegisteredProcess {
  app: string;
  version: string;
  host: string;
  pid: number;
  oldest: number;
  newest: number;
  /** By the clock of Redis. */
  seenAtMs: number;
  /** Those that all processes must agree on (differing-settings.ts). Processes of earlier releases do not say them. */
  settings?: Readonly<Record<string, string>>;
}

/** The record of the installation, as far as it concerns the format. All times are by the clock of Redis. */
export interface FormatRecord {
  nowMs: number;
  format: number;
  /** The oldest format in which records may be stored. */
  oldestStored: number;
  /** The release that raised the format; undefined where nobody has. */
  raisedBy: string | undefined;
  /** Counts registrations, so that a raise notices one that comes in between. */
  registrations: string;
  processes: RegisteredProcess[];
  /** Since when nothing has needed the format in force, and when somebody last looked. */
  settledSinceMs: number | undefined;
  lookedAtMs: number | undefined;
  /** When the last check for ingest processes of 0.1.0 began. */
  checkedSinceMs: number | undefined;
  /**
   * What 0.1.0 writes and later releases don't: the answer to a readiness probe, and what ingest says once a minute.
   */
  probedAtMs: number | undefined;
  hasIngestSign: boolean;
}

/** What keeps the format as it is, or that it may be raised. */
export type RaiseDecision =
  | { kind: 'newest' }
  | { kind: 'waiting'; processes: string[] }
  | { kind: 'settling'; sinceMs: number; raisesAtMs: number }
  | { kind: 'checking'; sinceMs: number; checkedSinceMs: number; raisesAtMs: number }
  | { kind: 'due' };

/**
 * Decides about the next format. `oldWorkers` are running workers that do not register: those of 0.1.0, as `host:pid`.
 * `windowMs`: for how long the release before must have been absent.
 */
export function decideRaise(
  record: FormatRecord,
  { newest, windowMs, oldWorkers }: { newest: number; windowMs: number; oldWorkers: readonly string[] },
): RaiseDecision {
  const { nowMs, format } = record;
  if (format >= newest) return { kind: 'newest' };
  const waitsFor = processesBefore(record, oldWorkers);
  if (waitsFor.length > 0) return { kind: 'waiting', processes: waitsFor };
  const isContinuous = isLookedAt(record);
  const sinceMs = (isContinuous ? record.settledSinceMs : undefined) ?? nowMs;
  const raisesAtMs = sinceMs + Math.max(windowMs, MIN_WINDOW_MS);
  const checkMs = format === FIRST_FORMAT ? INGEST_SIGN_MS : 0;
  if (nowMs < raisesAtMs) return { kind: 'settling', sinceMs, raisesAtMs: raisesAtMs + checkMs };
  const checkedSinceMs = (isContinuous ? record.checkedSinceMs : undefined) ?? nowMs;
  if (nowMs >= checkedSinceMs + checkMs) return { kind: 'due' };
  return { kind: 'checking', sinceMs, checkedSinceMs, raisesAtMs: checkedSinceMs + checkMs };
}

/** Whether the window goes on: somebody has looked often enough. */
export const isLookedAt = ({ nowMs, lookedAtMs }: FormatRecord): boolean =>
  lookedAtMs !== undefined && nowMs - lookedAtMs < MAX_GAP_MS;

/** The running processes that need the format in force. `oldWorkers` as for `decideRaise`. */
export function processesBefore(record: FormatRecord, oldWorkers: readonly string[]): string[] {
  const { nowMs, format } = record;
  const registered = record.processes
    .filter((one) => one.newest <= format && nowMs - one.seenAtMs < GONE_AFTER_MS)
    .map(({ app, version, host, pid }) => `${app} ${host}:${pid} (release ${version})`);
  return format === FIRST_FORMAT ? [...registered, ...signsOfFirstRelease(record, oldWorkers)] : registered;
}

/**
 * What shows that a process of 0.1.0 is running. An idle console that nobody probes gives no sign: for it there is the
 * window.
 */
function signsOfFirstRelease(record: FormatRecord, oldWorkers: readonly string[]): string[] {
  const signs = oldWorkers.map((worker) => `worker ${worker} (release 0.1.0)`);
  const { nowMs, probedAtMs = Number.NEGATIVE_INFINITY } = record;
  if (nowMs - probedAtMs < PROBE_SIGN_MS) signs.push('a process of release 0.1.0 that answers readiness probes');
  // The sign was removed when the check began.
  if (record.checkedSinceMs !== undefined && record.hasIngestSign) signs.push('an ingest process of release 0.1.0');
  return signs;
}

/** Why this release can't work with the data, and what to do; undefined if it can. */
export function describeMismatch(
  { format, oldestStored, raisedBy }: Pick<FormatRecord, 'format' | 'oldestStored' | 'raisedBy'>,
  readable: FormatRange,
  { prefix, version }: { prefix: string; version: string },
): string | undefined {
  const { oldest, newest } = readable;
  const reads = oldest === newest ? `format ${oldest} only` : `formats ${oldest} to ${newest}`;
  const where = `The data under KEY_PREFIX "${prefix}"`;
  if (format > newest) {
    const release = raisedBy === undefined ? 'the release that ran before' : `release ${raisedBy}`;
    return (
      `${where} has stored format ${format}. This is release ${version}, which reads ${reads}. ` +
      `Start ${release} or a later one; a way back to ${version} needs a backup from before the upgrade (docs/upgrades.md).`
    );
  }
  if (oldestStored < oldest) {
    return (
      `${where} has records of stored format ${oldestStored}. This is release ${version}, which reads ${reads}. ` +
      'First start an earlier release, and wait until it has migrated the data (docs/upgrades.md).'
    );
  }
  return undefined;
}
