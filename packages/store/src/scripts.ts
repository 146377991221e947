/**
 * Declares the Lua scripts: the arguments of each, in order, and its result. script.ts explains how arguments are written. Each file in lua/
 * says what its script does.
 */
import { ERASURE_STATUSES, type EventRef, jointRefOf, REPLAY_STATUSES } from '@posthorn/core';
import type { Cluster, Redis } from 'ioredis';
import { ADDRESS_FIELDS, DELIVERY_FIELDS, HELD_NOW, JOINT_JOB, VALUE_SEPARATOR } from './constants.ts';
import { FIRST_FORMAT } from './formats.ts';
import { composeScript, encodeArguments, type Script, script, takesFormat, type Values } from './script.ts';
import { replyError } from './storage-errors.ts';
import type { StoredFormat } from './stored-format.ts';

/** `pending`: its first job is in the queue, if the store was opened with one; `alreadyQueued`: it is parked, or has had its first job; `none`: the subscription is gone. */
const CREATED_STATES = ['pending', 'held', 'alreadyQueued', 'none'] as const;
export type CreatedState = (typeof CREATED_STATES)[number];
const REPLAY_REFUSALS = ['gone', 'not_failed', 'too_late', 'erased', 'not_active'] as const;
export type ReplayRefusal = (typeof REPLAY_REFUSALS)[number];

const TRY_NOW_REFUSALS = ['not_waiting', 'not_active', 'already_due'] as const;
export type TryNowRefusal = (typeof TRY_NOW_REFUSALS)[number];

const nothing = () => undefined;
const isOne = (reply: unknown) => reply === 1;

function oneOf<const T extends string>(words: readonly T[]): (reply: unknown) => T {
  return (reply) => {
    const word = words.find((expected) => expected === reply);
    if (word === undefined) throw new Error(`A script returned ${String(reply)}; expected ${words.join(', ')}`);
    return word;
  };
}
const createdState = oneOf(CREATED_STATES);
const stateOfLetter = (letter: string) => createdState(CREATED_STATES.find((state) => state.startsWith(letter)));
const trialKind = oneOf(['sent', 'waiting', 'over']);
const triedNow = oneOf(['tried', ...TRY_NOW_REFUSALS]);
const leaseState = oneOf(['renewed', 'new', 'dead']);
const storedPlace = oneOf(['own', 'other']);
const parkedIn = oneOf(['parked', 'overdue', 'not_overdue', 'superseded']);
const recordedKind = oneOf(['recorded', 'repeated', 'over']);

const EVENT_FIELD = DELIVERY_FIELDS.indexOf('e');
const SUBSCRIPTION_FIELD = DELIVERY_FIELDS.indexOf('s');
const KIND_FIELD = DELIVERY_FIELDS.indexOf('k');
const CREATED_FIELD = DELIVERY_FIELDS.indexOf('c');
const URL_FIELD = ADDRESS_FIELDS.indexOf('url');

function list(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Error(`A script returned ${String(reply)}; expected a list`);
  return reply;
}

/** A flat list of records of `size` fields. */
function records(reply: unknown, size: number): string[][] {
  const fields = list(reply).map(String);
  return Array.from({ length: fields.length / size }, (_, i) => fields.slice(i * size, (i + 1) * size));
}

/** What a script read of a job that it took. `delivery` and `address`: their `DELIVERY_FIELDS` and `ADDRESS_FIELDS`; undefined if the delivery is gone. */
export interface FoundJob {
  /** BullMQ's id of the job. */
  id: string;
  delivery?: (string | null)[];
  address?: (string | null)[];
  /** The event as it is stored; missing if the caller has it, or must read it. */
  event?: EventRecord | undefined;
}

/** An event as it is stored: its text, or the fields of a joint record. */
export type EventRecord = string | Readonly<Record<string, string>>;

/** The fields and values of a hash. */
function hashOf(reply: unknown): Record<string, string> {
  const all = list(reply);
  const hash: Record<string, string> = {};
  for (let i = 0; i < all.length; i += 2) hash[String(all[i])] = String(all[i + 1]);
  return hash;
}

/** The job that was taken, or when the next one is due (undefined: when one is added). */
export type NextJob = { job: FoundJob } | { dueAtMs: number | undefined };

function nextJob(reply: unknown): NextJob {
  const read = list(reply);
  if (read[0] === '') return { dueAtMs: read[1] === '' ? undefined : Number(read[1]) };
  return { job: foundJob(read) };
}

function foundJob(reply: unknown): FoundJob {
  // By index: the iterators of destructuring are a third of what this would allocate.
  const read = list(reply);
  const id = String(read[0]);
  if (read[1] === undefined) return { id };
  const values = String(read[1]).split(VALUE_SEPARATOR);
  const address = valuesOrNull(String(read[2]).split(VALUE_SEPARATOR));
  const subscriptionId = String(read[3]);
  address[URL_FIELD] = String(read[4]);
  const event = read[5];
  if (event === JOINT_JOB) {
    const joint = readJoint(values, jointRefOf(id.slice(0, DELIVERY_ID_LENGTH)), subscriptionId);
    return { id, delivery: joint.delivery, address, event: joint.event };
  }
  const delivery = valuesOrNull(values);
  delivery[SUBSCRIPTION_FIELD] = subscriptionId;
  return typeof event === 'string' ? { id, delivery, address, event } : { id, delivery, address };
}

const PLACES = new Map(DELIVERY_FIELDS.map((field, place) => [field, place]));

/** The fields of a delivery and its event, from the names and values of their joint record: the last value of a name. The text of the event is in one field. */
function readJoint(values: readonly string[], ref: EventRef | undefined, subscriptionId: string) {
  const delivery = DELIVERY_FIELDS.map((): string | null => null);
  const texts: string[] = [];
  for (let i = 0; i < values.length; i += 2) {
    const name = values[i] ?? '';
    const value = values[i + 1] ?? '';
    const place = PLACES.get(name);
    if (place !== undefined) delivery[place] = value;
    else if (name.startsWith('t')) texts[Number(name.slice(1)) - 1] = value;
  }
  delivery[EVENT_FIELD] = ref ?? null;
  delivery[SUBSCRIPTION_FIELD] = subscriptionId;
  const [kind, created] = [delivery[KIND_FIELD] ?? '', delivery[CREATED_FIELD] ?? ''];
  const event: EventRecord = { s: subscriptionId, k: kind, c: created, t1: texts.join('') };
  return { delivery, event };
}

/** Where a script has returned an empty text for a value that is missing. */
function valuesOrNull(values: (string | null)[]): (string | null)[] {
  for (let i = 0; i < values.length; i++) if (values[i] === '') values[i] = null;
  return values;
}

/** The event stored before, the states of the deliveries that were made, or that the topics have changed since the event was matched. */
export type EventReply = { stored: EventRecord; place: 'own' | 'other' } | { states: CreatedState[] } | 'outdated';

function storedEvent(reply: unknown): EventReply {
  if (typeof reply === 'string') return { states: Array.from(reply, stateOfLetter) };
  const [stored, place] = list(reply);
  if (stored === 'outdated') return stored;
  return { stored: Array.isArray(stored) ? hashOf(stored) : String(stored), place: storedPlace(place ?? 'own') };
}

function jobsOf(next: NextJob | undefined): FoundJob[] {
  return next && 'job' in next ? [next.job] : [];
}

/** A script returns an event once: gives it to the other jobs of that event too. */
function withEvents<T>(results: T[], jobsIn: (result: T) => readonly FoundJob[]): T[] {
  const texts = new Map<unknown, EventRecord>();
  for (const job of results.flatMap(jobsIn)) {
    const event = job.delivery?.[EVENT_FIELD];
    if (job.event === undefined) job.event = texts.get(event);
    else texts.set(event, job.event);
  }
  return results;
}

/** A job's id begins with that of its delivery. */
const DELIVERY_ID_LENGTH = 30;

/** What a script that takes jobs is told of the worker, and of the locks: see `ofWorker` in jobs.ts. */
const OF_WORKER = 'lockMs nowMs:number knownEvent? spansPartitions:flag perAddress:number busy? dueBeforeMs:number';

/** Of each subscription in a directory; see lua/lib/listed.lua. */
const LISTED_FIELDS = 9;

export const scripts = {
  storeEvents: script(
    'oldestMs lifeMs ...partitions(home? partition topicsVersion? slice searchUntilMs eventCount) ...events(event kind nowMs text expiresAtMs other? isPart? terms entry deliveryCount) ...deliveries(subscriptionId deliveryId deliveryHome?)',
    (reply) => list(reply).map(storedEvent),
  ),
  createDeliveries: script(
    'event kind nowMs oldestMs lifeMs eventPartition? ...deliveries(subscriptionId deliveryId)',
    (reply) => list(reply).map(createdState),
  ),
  keepJoint: script('event untilMs:number', nothing),
  shortenEvents: script('untilMs ...deliveries(event count position)', nothing),
  findOldestPending: script('', (reply) => list(reply).map(Number)),
  hold: script('id generation subscriptionId', isOne),
  recordAttempt: script(
    'id number:number verdict attempt endedAtMs nextAttemptAtMs? reason? expiresAtMs pauseAfter maxAttempts? retentionMs response? responsesUntilMs?',
    (reply) => {
      const [kind, failures, paused, parked] = list(reply);
      return {
        kind: recordedKind(kind),
        consecutiveFailures: Number(failures),
        paused: isOne(paused),
        parked: Number(parked),
      };
    },
  ),
  lookForJobs: script('...partitions(home)', (reply) =>
    list(reply).map((due) => (due === '' ? undefined : Number(due))),
  ),
  takeJobs: script(`token limit:number ${OF_WORKER}`, (reply) => {
    const [taken, parked] = list(reply);
    return { taken: withEvents(list(taken).map(nextJob), jobsOf), parkedAddresses: list(parked).map(String) };
  }),
  finishJob: script(`jobId token nextToken? ${OF_WORKER}`, (reply) => {
    const [code, next, parked] = list(reply);
    return { code: Number(code), next: next ? nextJob(next) : undefined, parkedAddresses: list(parked).map(String) };
  }),
  recordSuccesses: script(
    `maxAttempts? retentionMs:number ${OF_WORKER} ...successes(home? id number attempt endedAtMs expiresAtMs response? responsesUntilMs? jobId token nextToken? laneToken? parkedFirst?)`,
    (reply) => {
      const [successes, parkedAddresses] = list(reply);
      const ended = list(successes).map((one) => {
        const read = list(one);
        return {
          kind: recordedKind(read[0]),
          paused: false,
          parked: Number(read[1]),
          code: Number(read[2]),
          next: read[3] ? nextJob(read[3]) : undefined,
          parkedJobs: list(read[4]).map(foundJob),
        };
      });
      return {
        ended: withEvents(ended, ({ next, parkedJobs }) => [...jobsOf(next), ...parkedJobs]),
        parkedAddresses: list(parkedAddresses).map(String),
      };
    },
  ),
  watchWorkers: script('owner? checkMs:number maxChecks:number limit:number', (reply) => {
    const [state, putBack, isMore] = list(reply);
    return { state: state === '' ? undefined : leaseState(state), putBack: Number(putBack), isMore: isOne(isMore) };
  }),
  endDeliveries: script('reason nowMs:number expiresAtMs retentionMs:number onlyHeld:flag ...deliveries(id)', (reply) =>
    records(reply, 2).map(([deliveryId = '', generation]) => ({ deliveryId, generation: Number(generation) })),
  ),
  park: script('id generation subscriptionId nowMs:number dueBeforeMs:number onlyOverdue:flag', parkedIn),
  parkJobs: script(`${OF_WORKER} ...jobs(home? id generation subscriptionId jobId token nextToken?)`, (reply) => {
    const [jobs, parkedAddresses] = list(reply);
    const ended = list(jobs).map((job) => {
      const [lane, code, next] = list(job);
      return { lane: parkedIn(lane), code: Number(code), next: next ? nextJob(next) : undefined };
    });
    return { ended: withEvents(ended, ({ next }) => jobsOf(next)), parkedAddresses: list(parkedAddresses).map(String) };
  }),
  release: script('nowMs:number ...lanes(home? lane subscriptionId limit)', (reply) =>
    list(reply).map((lane) => {
      if (typeof lane === 'string') return replyError(lane);
      return records(lane, 4).map(([, generation, event]) => ({
        isHeld: generation === HELD_NOW,
        event: event as EventRef,
      }));
    }),
  ),
  sendTrial: script('subscriptionId nowMs:number retentionMs:number', (reply) => {
    const [kind, deliveryId, generation, event, attempts] = list(reply).map(String);
    if (trialKind(kind) !== 'sent') return undefined;
    return {
      deliveryId: String(deliveryId),
      generation: Number(generation),
      event: event as EventRef,
      isRetry: attempts !== '0',
    };
  }),
  tryNow: script('id nowMs:number retentionMs:number auditEntry:audit', (reply) => {
    const [kind, generation, event, subscriptionId] = list(reply);
    const refused = triedNow(kind);
    if (refused !== 'tried') return { refused };
    return { generation: Number(generation), event: event as EventRef, subscriptionId: String(subscriptionId) };
  }),
  rescue: script('...jobs(deliveryId generation)', (reply) =>
    records(reply, 5).map(([deliveryId = '', generation, event, subscriptionId = '', dueAt]) => ({
      deliveryId,
      generation: Number(generation),
      event: event as EventRef,
      subscriptionId,
      dueAtMs: Number(dueAt),
    })),
  ),
  saveSubscription: script(
    'id expectedRevision status createdAtMs topics nowMs:number retentionMs:number auditEntry:audit? statusReason? ...fields(field value)',
    (reply) => (reply === -1 ? { isSaved: false } : { isSaved: true, isTopicChange: isOne(list(reply)[1]) }),
  ),
  deleteSubscription: script('id nowMs:number retentionMs:number auditEntry:audit', isOne),
  clearDeleted: script('id lifeMs', nothing),
  readChanges: script('position? limit ...statuses(status)', (reply) => {
    const [changes, counts] = list(reply);
    return {
      changes: list(changes).map((entry) => {
        const [position, fields] = list(entry);
        return { position: String(position), subscriptionId: String(list(fields)[1]) };
      }),
      counts: list(counts).map(Number),
    };
  }),
  scanListed: script('status cursor count', (reply) => {
    const [cursor, found] = list(reply);
    return { cursor: String(cursor), found: records(found, LISTED_FIELDS) };
  }),
  readListed: script('...ids(id)', (reply) => records(reply, LISTED_FIELDS)),
  replayDelivery: script(
    'subscriptionId failedId firstId newId nowMs:number oldestMs lifeMs retentionMs:number auditEntry:audit',
    oneOf([...CREATED_STATES, ...REPLAY_REFUSALS]),
  ),
  startReplay: script(
    'id subscriptionId status isAccepted:flag nowMs:number retentionMs:number auditEntry:audit ...fields(field value)',
    oneOf(['started', 'no_subscription', 'not_active']),
  ),
  saveReplayBatch: script('id text expiresAtMs', nothing),
  cancelReplayBatch: script('id cancellation', oneOf(['cancelled', 'gone'])),
  closeReplayBatch: script('id cancellation?', isOne),
  stepReplay: script(
    'id cursor? nextCursor? isLast:flag lookedAt nowMs:number oldestMs lifeMs retentionMs:number ...candidates(failedId firstId newId)',
    isOne,
  ),
  judgeReplay: script('id hasPassed:flag nowMs:number retentionMs:number', isOne),
  continueReplay: script(
    'id nowMs:number lifeMs retentionMs:number auditEntry:audit',
    oneOf(['continued', 'gone', ...REPLAY_STATUSES]),
  ),
  cancelReplay: script(
    'id nowMs:number lifeMs:number retentionMs:number auditEntry:audit',
    oneOf(['now_cancelled', 'gone', ...REPLAY_STATUSES]),
  ),
  endCancelled: script(
    'id swept? nextSwept? isLast:flag taken nowMs:number expiresAtMs retentionMs:number ...deliveries(deliveryId generation)',
    (reply) => isOne(list(reply)[0]),
  ),
  startErasure: script(
    'id maxOpen:number nowMs:number listedMs:number retentionMs:number auditEntry:audit? ...fields(field value)',
    isOne,
  ),
  advanceErasure: script(
    'id from to nowMs:number retentionMs:number auditEntry:audit? ...fields(field value)',
    oneOf(['advanced', 'gone', ...ERASURE_STATUSES]),
  ),
  scanEvents: script('cursor run? pattern limit', (reply) => {
    const [cursor, run, found] = list(reply);
    return { cursor: String(cursor), run: String(run), keys: list(found).map(String) };
  }),
  moveScan: script('id passes cursor? nextCursor? run? lifeMs', isOne),
  findEvent: script('id event deliveries unsent lifeMs', nothing),
  eraseDeliveries: script(
    'endsUnsent:flag nowMs:number expiresAtMs retentionMs:number ...deliveries(id generation)',
    Number,
  ),
  eraseEvent: script('id event text search deliveries ended responses', nothing),
  appendAudit: script('nowMs:number retentionMs:number auditEntry:audit', nothing),
  addCounts: script('key lifeMs ...counts(field count)', nothing),
  addAddressCounts: script(
    'rankingKey slowKey lifeMs healthLifeMs nowMs:number minute:number ...addresses(key subscriptionId succeeded failed totalMs url failedInARow succeededInARow firstFailedAtMs lastSucceededAtMs errors slow)',
    nothing,
  ),
  heartbeat: script('id state nowMs forgetBeforeMs', nothing),
  pruneIndex: script('key beforeMs offset limit', (reply) => {
    const [lookedAt, removed] = list(reply).map(Number);
    return { lookedAt: lookedAt ?? 0, removed: removed ?? 0 };
  }),
  pruneSucceeded: script('after? beforeMs limit', (reply) => {
    const [lookedAt, last] = list(reply);
    return { lookedAt: Number(lookedAt), last: String(last) };
  }),
  lease: script('key holder lifeMs', isOne),
  joinInstallation: script('id? state isEmpty:flag partitions oldest:number newest:number version', (reply) => {
    const [format, raisedBy, oldestStored, partitions] = list(reply).map(String);
    return {
      format: Number(format),
      raisedBy: raisedBy || undefined,
      oldestStored: Number(oldestStored),
      partitions: Number(partitions),
    };
  }),
  readInstallation: script('', (reply) => {
    const [nowMs, format, oldestStored, fields] = list(reply);
    return {
      nowMs: Number(nowMs),
      format: Number(format),
      oldestStored: Number(oldestStored),
      fields: new Map(records(fields, 2).map(([field = '', value = '']) => [field, value])),
    };
  }),
  raiseFormat: script('from:number registrations version', isOne),
};

type Scripts = typeof scripts;
type ScriptName = keyof Scripts;
export type ScriptResult<N extends ScriptName> = ReturnType<Scripts[N]['decode']>;

/** A record as a list of fields and values, for a hash. */
export function fieldList(
  record: Readonly<Record<string, string | number>>,
): { field: string; value: string | number }[] {
  return Object.entries(record).map(([field, value]) => ({ field, value }));
}

const texts = new Map<string, string>();
/** The scripts that are sent the stored format, as their first argument. The part that replaces lua/lib/first-job.lua does not name it. */
export const withFormat = new Set<string>();

/** Gives a connection one command for each script. `firstJobLua` replaces lua/lib/first-job.lua. Throws where a script's file is missing. */
export function defineScripts(redis: Redis | Cluster, firstJobLua?: string): void {
  const parts = firstJobLua === undefined ? {} : { 'first-job': firstJobLua };
  for (const [name, script] of Object.entries(scripts)) {
    const id = `${name} ${firstJobLua ?? ''}`;
    const lua = texts.get(id) ?? composeScript(name, script, parts);
    texts.set(id, lua);
    if (takesFormat(lua)) withFormat.add(name);
    redis.defineCommand(commandName(name), { lua, numberOfKeys: 1 });
  }
}

/** Runs a script on the partition whose keys begin with `prefix`. Rejects with `StartError` if this process can't read what is stored any more. */
export async function runScript<N extends ScriptName>(
  store: { redis: Redis | Cluster; format?: StoredFormat },
  name: N,
  prefix: string,
  values: Values<Scripts[N]['declaration']>,
): Promise<ScriptResult<N>> {
  const script: Script<Scripts[N]['declaration'], unknown> = scripts[name];
  const commands = store.redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>;
  const unconfirmed = store.format?.confirm();
  if (unconfirmed) await unconfirmed;
  const args = encodeArguments(script, values);
  if (withFormat.has(name)) args.unshift(store.format?.current() ?? FIRST_FORMAT);
  const reply = await commands[commandName(name)]!(prefix, ...args);
  return script.decode(reply) as ScriptResult<N>;
}

function commandName(script: string): string {
  return `script_${script}`;
}
