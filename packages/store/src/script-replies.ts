/** Reads what the scripts of scripts.ts return: words, lists, jobs and events. */
import { type EventRef, jointRefOf, type NextJob, readJobId } from '@posthorn/core';
import { ADDRESS_PLACES, DELIVERY_FIELDS, DELIVERY_PLACES, JOINT_JOB, VALUE_SEPARATOR } from './constants.ts';
import { replyError } from './redis/storage-errors.ts';

/**
 * What a script says of a delivery that it was to make. `pending`: its first job is in the queue;
 * `without_first_job`: it is parked, or has had its first job; `none`: the subscription is gone.
 */
export const CREATED_STATES = ['pending', 'held', 'without_first_job', 'none'] as const;
export type CreatedState = (typeof CREATED_STATES)[number];
export const REPLAY_REFUSALS = ['gone', 'not_failed', 'too_late', 'erased', 'not_active'] as const;
export type ReplayRefusal = (typeof REPLAY_REFUSALS)[number];

export const TRY_NOW_REFUSALS = ['not_waiting', 'not_active', 'already_due'] as const;
export type TryNowRefusal = (typeof TRY_NOW_REFUSALS)[number];

/** For a script whose reply says nothing. */
export const nothing = () => undefined;
/** For a script that returns 1 or 0. */
export const isOne = (reply: unknown) => reply === 1;

/** For a script that returns one of some words. Throws for any other reply. */
export function oneOf<const T extends string>(words: readonly T[]): (reply: unknown) => T {
  return (reply) => {
    const word = words.find((expected) => expected === reply);
    if (word === undefined) throw new Error(`A script returned ${String(reply)}; expected ${words.join(', ')}`);
    return word;
  };
}
export const createdState = oneOf(CREATED_STATES);
const stateOfLetter = (letter: string) => createdState(CREATED_STATES.find((state) => state.startsWith(letter)));
const storedPlace = oneOf(['own', 'other']);

export function list(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Error(`A script returned ${String(reply)}; expected a list`);
  return reply;
}

/** A flat list of records of `size` fields. */
export function records(reply: unknown, size: number): string[][] {
  const fields = list(reply).map(String);
  return Array.from({ length: fields.length / size }, (_, i) => fields.slice(i * size, (i + 1) * size));
}

/**
 * What a script read of a job that it took. `delivery` and `address`: their `DELIVERY_FIELDS` and `ADDRESS_FIELDS`;
 * undefined if the delivery is gone, or could not be read because of `error`.
 */
export interface FoundJob {
  /** BullMQ's id of the job. */
  id: string;
  delivery?: (string | null)[];
  address?: (string | null)[];
  /** The event as it is stored; missing if the caller has it, or must read it. */
  event?: EventRecord | undefined;
  error?: Error;
}

/** An event as it is stored: its text, or the fields of a joint record. */
export type EventRecord = string | Readonly<Record<string, string>>;

/** The fields and values of a hash. */
function recordOf(reply: unknown): Record<string, string> {
  const all = list(reply);
  const hash: Record<string, string> = {};
  for (let i = 0; i < all.length; i += 2) hash[String(all[i])] = String(all[i + 1]);
  return hash;
}

function nextJob(reply: unknown): NextJob<FoundJob> {
  const read = list(reply);
  if (read[0] === '') return { dueAtMs: read[1] === '' ? undefined : Number(read[1]) };
  return { job: foundJob(read) };
}

function foundJob(reply: unknown): FoundJob {
  // By index: the iterators of destructuring are a third of what this would allocate.
  const read = list(reply);
  const id = String(read[0]);
  if (read[1] === undefined) return { id };
  if (read[2] === undefined) return { id, error: replyError(String(read[1])) };
  const values = String(read[1]).split(VALUE_SEPARATOR);
  const address = valuesOrNull(String(read[2]).split(VALUE_SEPARATOR));
  const subscriptionId = String(read[3]);
  address[ADDRESS_PLACES.url] = String(read[4]);
  const event = read[5];
  if (event === JOINT_JOB) {
    const joint = readJoint(values, jointRefOf(readJobId(id).deliveryId), subscriptionId);
    return { id, delivery: joint.delivery, address, event: joint.event };
  }
  const delivery = valuesOrNull(values);
  delivery[DELIVERY_PLACES.s] = subscriptionId;
  return typeof event === 'string' ? { id, delivery, address, event } : { id, delivery, address };
}

const placeOf = new Map(Object.entries(DELIVERY_PLACES));

/**
 * The fields of a delivery and its event, from the names and values of their joint record: the last value of a name.
 * The text of the event is in one field.
 */
function readJoint(values: readonly string[], ref: EventRef | undefined, subscriptionId: string) {
  const delivery = DELIVERY_FIELDS.map((): string | null => null);
  const texts: string[] = [];
  for (let i = 0; i < values.length; i += 2) {
    const name = values[i] ?? '';
    const value = values[i + 1] ?? '';
    const place = placeOf.get(name);
    if (place !== undefined) delivery[place] = value;
    else if (name.startsWith('t')) texts[Number(name.slice(1)) - 1] = value;
  }
  delivery[DELIVERY_PLACES.e] = ref ?? null;
  delivery[DELIVERY_PLACES.s] = subscriptionId;
  const [kind, created] = [delivery[DELIVERY_PLACES.k] ?? '', delivery[DELIVERY_PLACES.c] ?? ''];
  const event: EventRecord = { s: subscriptionId, k: kind, c: created, t1: texts.join('') };
  return { delivery, event };
}

/** Where a script has returned an empty text for a value that is missing. */
function valuesOrNull(values: (string | null)[]): (string | null)[] {
  for (let i = 0; i < values.length; i++) if (values[i] === '') values[i] = null;
  return values;
}

/**
 * The event stored before, the states of the deliveries that were made, or that the topics have changed since the event
 * was matched.
 */
export type EventReply = { stored: EventRecord; place: 'own' | 'other' } | { states: CreatedState[] } | 'outdated';

export function storedEvent(reply: unknown): EventReply {
  if (typeof reply === 'string') return { states: Array.from(reply, stateOfLetter) };
  const [stored, place] = list(reply);
  if (stored === 'outdated') return stored;
  return { stored: Array.isArray(stored) ? recordOf(stored) : String(stored), place: storedPlace(place ?? 'own') };
}

function jobsOf(next: NextJob<FoundJob> | undefined): FoundJob[] {
  return next && 'job' in next ? [next.job] : [];
}

/** A script returns an event once: gives it to the other jobs of that event too. */
function withEvents<T>(results: T[], jobsIn: (result: T) => readonly FoundJob[]): T[] {
  const texts = new Map<unknown, EventRecord>();
  for (const job of results.flatMap(jobsIn)) {
    const event = job.delivery?.[DELIVERY_PLACES.e];
    if (job.event === undefined) job.event = texts.get(event);
    else texts.set(event, job.event);
  }
  return results;
}

/** The jobs that were taken from each partition, or its error; and the addresses of which deliveries were parked. */
export function takenJobs(reply: unknown) {
  const [taken, parked] = list(reply);
  const ofEach = list(taken).map((jobs) => (typeof jobs === 'string' ? replyError(jobs) : list(jobs).map(nextJob)));
  return {
    taken: withEvents(ofEach, (jobs) => (jobs instanceof Error ? [] : jobs.flatMap(jobsOf))),
    parkedAddresses: list(parked).map(String),
  };
}

/** How a job ended, what was taken in its place, and the addresses of which deliveries were parked. */
export function finishedJob(reply: unknown) {
  const [code, next, parked] = list(reply);
  return { code: Number(code), next: next ? nextJob(next) : undefined, parkedAddresses: list(parked).map(String) };
}

const recordedKind = oneOf(['recorded', 'repeated', 'over']);

export function recordedFailure(reply: unknown) {
  const [kind, paused, parked] = list(reply);
  return { kind: recordedKind(kind), paused: isOne(paused), parked: Number(parked) };
}

/**
 * The same of each success, with how its job ended and what was taken; and the addresses of which deliveries were
 * parked.
 */
export function recordedSuccesses(reply: unknown) {
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
}

const parkedIn = oneOf(['parked', 'overdue', 'superseded']);

/**
 * The lane of each parked delivery, with how its job ended and what was taken; and the addresses of which others were
 * parked.
 */
export function parkedDeliveries(reply: unknown) {
  const [jobs, parkedAddresses] = list(reply);
  const ended = list(jobs).map((job) => {
    const [lane, code, next] = list(job);
    return { lane: parkedIn(lane), code: Number(code), next: next ? nextJob(next) : undefined };
  });
  return { ended: withEvents(ended, ({ next }) => jobsOf(next)), parkedAddresses: list(parkedAddresses).map(String) };
}
