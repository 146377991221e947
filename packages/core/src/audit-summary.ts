/** An entry of the audit trail in plain words: what was done, for lists. */
import type { AuditAction, AuditEntry } from './audit.ts';
import { cutText } from './basics/cut-text.ts';
import { utcText } from './basics/time.ts';

/** Characters of a description or a URL within a summary. */
const MAX_QUOTED = 120;

type Detail = Readonly<Record<string, unknown>>;

/**
 * What each action did. The subject is the operator, who is shown beside it. Details of an older version may lack any
 * field.
 */
const SUMMARIES: Record<AuditAction, (detail: Detail, atMs: number) => string> = {
  'subscription.created': createdText,
  'subscription.updated': (detail) => `Changed ${changesText(detail) || 'the subscription'}.`,
  'subscription.deleted': ({ url }) => `Deleted the subscription${isText(url) ? ` to ${cut(url)}` : ''}.`,
  'subscription.validated': validatedText,
  'subscription.paused': (detail) => `Paused the address${pauseCause(detail.reason, detail.consecutive_failures)}.`,
  'subscription.resumed': (detail) => `Resumed the address${resumedFrom(detail)}.`,
  'subscription.resume_succeeded': () => 'Ended the resume: the first held delivery arrived, and the others follow.',
  'subscription.resume_failed': () =>
    'Paused the address again: the first held delivery failed, and the others stay held.',
  'subscription.secret_rotated': rotatedText,
  'subscription.tested': () => 'Sent a test delivery.',
  'delivery.replayed': () => 'Replayed a failed delivery.',
  'delivery.tried_now': triedNowText,
  'replay.started': replayStartedText,
  'replay.cancelled': (detail) => `Cancelled a bulk replay${progressText(detail)}.`,
  'replay.continued': (detail) => `Continued a bulk replay${progressText(detail)}.`,
  'erasure.started': erasureStartedText,
  'erasure.done': erasureDoneText,
  'erasure.cancelled': erasureCancelledText,
  'session.started': () => 'Signed in.',
  'session.ended': () => 'Signed out.',
};

/** Returns what an entry says was done, in a sentence or two. Times in it are in UTC. */
export function summarizeAudit({ action, detail = {} }: Pick<AuditEntry, 'action' | 'detail'>, atMs: number): string {
  // A newer version may have written an action that this one does not know.
  const summary = SUMMARIES[action] as (typeof SUMMARIES)[AuditAction] | undefined;
  return summary === undefined ? `${action}.` : summary(detail, atMs);
}

function createdText({ event_types: types, environment, description }: Detail): string {
  const what = types === undefined ? '' : ` for ${typesText(types)}`;
  const where = environment === undefined ? '' : ` in ${environmentText(environment)}`;
  const described = isText(description) ? ` Description: ${quoted(description)}.` : '';
  return `Created the subscription${what}${where}.${described}`;
}

const FIELD_NAMES: Readonly<Record<string, string>> = {
  url: 'the address',
  event_types: 'the event types',
  environment: 'the environment',
  description: 'the description',
  status: 'the status',
};

/** For example `the address from … to …, and the status from active to awaiting validation`. */
function changesText(detail: Detail): string {
  const changes = Object.entries(detail).map(([name, value]) => {
    const { from, to } = (value ?? {}) as { from?: unknown; to?: unknown };
    return `${FIELD_NAMES[name] ?? words(name)} from ${valueText(name, from)} to ${valueText(name, to)}`;
  });
  return changes.length > 1 ? `${changes.slice(0, -1).join(', ')}, and ${changes.at(-1)}` : changes.join();
}

function valueText(name: string, value: unknown): string {
  if (value === undefined || value === null || value === '') return 'none';
  if (name === 'event_types') return typesText(value);
  if (name === 'environment') return environmentText(value);
  if (name === 'description') return quoted(String(value));
  return name === 'url' ? cut(String(value)) : words(String(value));
}

function validatedText({ status, reason }: Detail): string {
  if (status === undefined) return 'Validated the address.';
  const why = isText(reason) ? ` (${words(reason)})` : '';
  return `Validated the address: it is now ${words(String(status))}${why}.`;
}

/** `after 20 failed deliveries in a row`, or nothing if an operator did it, who is shown beside it. */
function pauseCause(reason: unknown, failures: unknown): string {
  if (reason !== 'consecutive_failures') return '';
  // A delivery that arrived while the address was paused has set the count to 0.
  return ` after ${isNumber(failures) && failures > 0 ? countOf(failures, 'failed delivery', 'failed deliveries') : 'failed deliveries'} in a row`;
}

function resumedFrom({ was_paused_for: reason, consecutive_failures: failures }: Detail): string {
  if (reason === 'operator') return ', which an operator had paused';
  return reason === 'consecutive_failures' ? `, which was paused${pauseCause(reason, failures)}` : '';
}

function rotatedText({ previous_secret_until: until }: Detail, atMs: number): string {
  const end = instantText(until);
  if (!isText(until) || end === undefined) return 'Rotated the signing secret.';
  const isOver = Date.parse(until) <= atMs;
  return `Rotated the signing secret. The previous one ${isOver ? 'stopped signing at once' : `signs until ${end}`}.`;
}

function triedNowText({ deliveries }: Detail): string {
  if (!isNumber(deliveries)) return 'Made the next attempt of a delivery due at once.';
  const attempts = deliveries === 1 ? 'attempt' : 'attempts';
  return `Asked to make the next ${attempts} of ${countOf(deliveries, 'delivery', 'deliveries')} due at once.`;
}

function replayStartedText(detail: Detail): string {
  const { total, from, to, event_type: type, error, failed_from: failedFrom, failed_to: failedTo, canary } = detail;
  const conditions = [
    rangeText('created', from, to),
    isText(type) && `of type ${type}`,
    isText(error) && `that failed with ${words(error)}`,
    rangeText('that failed', failedFrom, failedTo),
  ].filter(Boolean);
  const what = isNumber(total) ? ` of ${countOf(total, 'failed delivery', 'failed deliveries')}` : '';
  const first = canary === true ? ' A few go first, and the others only if those arrive.' : '';
  return `Started a bulk replay${what}${conditions.length > 0 ? ` ${conditions.join(', ')}` : ''}.${first}`;
}

function rangeText(what: string, from: unknown, to: unknown): string | false {
  const start = instantText(from);
  const end = instantText(to);
  if (start && end) return `${what} from ${start} to ${end}`;
  if (start) return `${what} since ${start}`;
  return end !== undefined && `${what} until ${end}`;
}

function progressText({ replayed, total, delivered, failed, waiting }: Detail): string {
  if (!isNumber(replayed) || !isNumber(total)) return '';
  const outcome = [
    isNumber(delivered) && `${delivered} delivered`,
    isNumber(failed) && failed > 0 && `${failed} failed`,
    isNumber(waiting) && waiting > 0 && `${waiting} waiting`,
  ].filter(Boolean);
  return ` when ${replayed} of ${total} ${replayed === 1 ? 'was' : 'were'} replayed${outcome.length > 0 ? `: ${outcome.join(', ')}` : ''}`;
}

const ERASURE_FIELD_NAMES: Readonly<Record<string, string>> = {
  event_id: 'an event',
  session_id: 'a session',
  reference: 'a reference',
  user_id: 'a user',
};

function whose(field: unknown): string {
  return ERASURE_FIELD_NAMES[String(field)] ?? 'a value';
}

function erasureStartedText({ field, events, unsent }: Detail): string {
  const found = isNumber(events) ? ` (${countOf(events, 'event', 'events')})` : '';
  const rest = unsent === 'deliver' ? 'Unsent deliveries are sent first.' : 'Unsent deliveries end.';
  return `Confirmed the erasure of the payloads of ${whose(field)}${found}. ${rest}`;
}

function erasureDoneText({ field, erased_events: events, ended_deliveries: ended }: Detail): string {
  const unsent = isNumber(ended) && ended > 0 ? ` ${countOf(ended, 'delivery', 'deliveries')} ended unsent.` : '';
  if (field === 'event_id') return `Erased the payload of an event.${unsent}`;
  const what = isNumber(events) ? ` of ${countOf(events, 'event', 'events')}` : '';
  return `Erased the payloads${what} of ${whose(field)}.${unsent}`;
}

function erasureCancelledText({ field, erased_events: erased, events }: Detail): string {
  const progress =
    isNumber(erased) && isNumber(events)
      ? ` when ${erased} of ${countOf(events, 'event', 'events')} ${erased === 1 ? 'was' : 'were'} erased`
      : '';
  return `Cancelled the erasure of the payloads of ${whose(field)}${progress}.`;
}

function typesText(types: unknown): string {
  if (types === 'all') return 'all event types';
  return Array.isArray(types) ? types.join(', ') : String(types);
}

function environmentText(environment: unknown): string {
  return environment === 'both' ? 'both environments' : String(environment);
}

/** An instant in a detail: ISO 8601, or milliseconds. */
function instantText(value: unknown): string | undefined {
  if (!isText(value) && !isNumber(value)) return undefined;
  const ms = isNumber(value) ? value : Date.parse(value);
  return Number.isNaN(new Date(ms).getTime()) ? undefined : utcText(ms);
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isNumber = (value: unknown): value is number => typeof value === 'number';
const countOf = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;
const words = (name: string) => name.replaceAll('_', ' ');
const cut = (text: string) => cutText(text, MAX_QUOTED);
const quoted = (text: string) => `“${cut(text)}”`;
