/** Stores subscriptions; each write updates in one step the indexes that ingest and worker rely on. */
import { randomUUID } from 'node:crypto';
import {
  AppError,
  type AuditEntry,
  type CameBack,
  type LastResume,
  NEW_ADDRESS,
  newSubscriptionId,
  RESUME_OUTCOMES,
  type StatusReason,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  type Subscription,
  topicsOfSubscription,
  type Validation,
} from '@posthorn/core';
import { afterChange } from '../changes.ts';
import { DELETED } from '../constants.ts';
import { decodeNamed, readNamed, wordOf } from '../decode-named.ts';
import { decodeCameBack, encodeCameBack } from '../deliveries/responses.ts';
import { announceTopics, readVersions, topicsStep } from '../events/matcher.ts';
import { prefixOfSubscription, RESUMING, subscriptionKey } from '../keys.ts';
import { fieldList, runScript } from '../scripts.ts';
import { rankingKeys } from '../stats.ts';
import type { Store } from '../store.ts';

/** Each concurrent save costs a call one try, so this many concurrent calls always succeed. */
const MAX_TRIES = 20;

/** Each ingest compares the versions of the topics in all partitions once a second. */
const NOT_ANNOUNCED = 'Events of the next second may not follow it yet. There is nothing to repeat.';

/** A subscription with what only Posthorn itself sees. */
export interface StoredSubscription extends Subscription {
  sealedSecret: string;
  /** The secret before the last rotation and until when it still signs; null where there is none. */
  previousSealedSecret: string | null;
  previousSecretUntilMs: number;
  /** When the secret was last rotated; null if it never was. */
  secretRotatedAtMs: number | null;
  /** The newest validation of its url; null if there was none. */
  lastValidation: Validation | null;
  /** Counts writes; a save with an outdated one is refused. */
  revision: string;
}

/** The sealed secrets that sign at a moment, the newest first: two while a rotation overlaps (interface 4). */
export function sealedSecretsAt(
  subscription: Pick<StoredSubscription, 'sealedSecret' | 'previousSealedSecret' | 'previousSecretUntilMs'>,
  atMs: number,
): string[] {
  const { sealedSecret, previousSealedSecret, previousSecretUntilMs } = subscription;
  const overlaps = previousSealedSecret !== null && atMs < previousSecretUntilMs;
  return overlaps ? [sealedSecret, previousSealedSecret] : [sealedSecret];
}

/** A new subscription, ready to be saved. */
export function newSubscription(
  fields: Pick<Subscription, 'url' | 'eventTypes' | 'environment' | 'description'> & {
    id?: string;
    key?: string | null;
    sealedSecret: string;
  },
  nowMs: number,
): StoredSubscription {
  return {
    ...fields,
    id: fields.id ?? newSubscriptionId(),
    key: fields.key ?? null,
    ...NEW_ADDRESS,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    lastResume: null,
    pausedAtMs: null,
    previousSealedSecret: null,
    previousSecretUntilMs: 0,
    secretRotatedAtMs: null,
    lastValidation: null,
    revision: '',
  };
}

/**
 * Saves a subscription read before, or a new one. Returns whether it was saved: not if it has been changed or deleted
 * meanwhile. The workers count `consecutiveFailures`, so that is written only with `resetFailures`. `lastResume` and
 * `pausedAtMs` are written by scripts alone. A subscription saved as `resuming` has its trial sent by maintenance; if
 * nothing of it waits outside the queue, it becomes active at once.
 */
export async function saveSubscription(
  store: Store,
  subscription: StoredSubscription,
  options: { resetFailures?: boolean; audit?: AuditEntry | undefined } = {},
): Promise<boolean> {
  const { id } = subscription;
  const fields = encodeFields(subscription);
  if (options.resetFailures || subscription.revision === '') fields.consecutive_failures = 0;
  const prefix = prefixOfSubscription(store, id);
  const topics = subscription.takesEvents ? topicsOfSubscription(subscription).join(' ') : '';
  const topicsBefore = await store.redis.hget(subscriptionKey(prefix, id), 'topics');
  if (topics !== (topicsBefore ?? '')) await checkAllReply(store);
  const saved = await runScript(store, 'saveSubscription', prefix, {
    id,
    saveId: randomUUID(),
    expectedRevision: subscription.revision,
    status: subscription.resuming ? RESUMING : subscription.status,
    createdAtMs: subscription.createdAtMs,
    topics,
    topicsStep: topicsStep(),
    nowMs: subscription.updatedAtMs,
    retentionMs: store.retentionMs,
    auditEntry: options.audit && { ...options.audit, subscriptionId: id },
    statusReason: subscription.statusReason ?? undefined,
    fields: fieldList(fields),
  });
  // If it was refused, a first try whose reply was lost may have saved it, and another call since.
  if (!saved.isSaved) await announceTopics(store, prefix);
  else if (saved.isTopicChange)
    await afterChange(`The change was made. ${NOT_ANNOUNCED}`, announceTopics(store, prefix));
  return saved.isSaved;
}

/**
 * To be called before a change of topics. Throws `StorageUnavailable` if a partition does not reply: the change has to
 * be announced to it, and after it ingest would accept no event at all, since it would have to read the topics of all.
 */
async function checkAllReply(store: Store): Promise<void> {
  await readVersions(store);
}

/**
 * Reads, changes and saves a subscription, and does so again if it was saved in between. `change` returns the new
 * state, or undefined to leave it as it is; `audit` returns the entry of the audit trail. Returns the state now stored,
 * or undefined where there is no such subscription. Throws `AppError` `conflict`, and has changed nothing, after
 * `MAX_TRIES` saves in between.
 */
export async function changeSubscription(
  store: Store,
  id: string,
  change: (now: StoredSubscription) => StoredSubscription | undefined,
  audit?: (before: StoredSubscription, after: StoredSubscription) => AuditEntry,
): Promise<StoredSubscription | undefined> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const [present] = await loadSubscriptions(store, [id]);
    if (!present) return undefined;
    const changed = change(present);
    if (!changed) return present;
    // Also if there was none yet: a worker may have counted one for the old url since.
    const mayHaveFailures = present.consecutiveFailures > 0 || changed.url !== present.url;
    const resetFailures = changed.consecutiveFailures === 0 && mayHaveFailures;
    if (await saveSubscription(store, changed, { resetFailures, audit: audit?.(present, changed) }))
      return (await loadSubscriptions(store, [id]))[0];
  }
  throw new AppError('conflict', 'Too many calls change this subscription at the same time. Try again.');
}

/** Subscriptions by id, in the order of the ids; undefined for an id that has none. */
export async function loadSubscriptions(
  store: Store,
  ids: readonly string[],
): Promise<(StoredSubscription | undefined)[]> {
  return await Promise.all(
    ids.map(async (id) => {
      const key = subscriptionKey(prefixOfSubscription(store, id), id);
      const record = await readNamed('subscription', id, store.redis.hgetall(key));
      return decodeNamed('subscription', id, () => decode(id, record));
    }),
  );
}

/** The url and the description of a subscription. */
export interface SubscriptionName {
  id: string;
  url: string;
  description: string;
}

/** The names of these subscriptions, in the order of the ids, without those that do not exist. */
export async function readNames(store: Store, ids: readonly string[]): Promise<SubscriptionName[]> {
  const names = await Promise.all(
    ids.map(async (id) => {
      const key = subscriptionKey(prefixOfSubscription(store, id), id);
      const [url, description] = await store.redis.hmget(key, 'url', 'description');
      return url ? { id, url, description: description ?? '' } : undefined;
    }),
  );
  return names.filter((name) => name !== undefined);
}

/**
 * Deletes a subscription at once; `closeSubscription` ends its deliveries and clears the rest. `by` also has the detail
 * of the audit entry. Returns false where there is none.
 */
export async function deleteSubscription(
  store: Store,
  id: string,
  nowMs: number,
  by: Pick<AuditEntry, 'operator' | 'detail'>,
): Promise<boolean> {
  const prefix = prefixOfSubscription(store, id);
  await checkAllReply(store);
  const createdAtMs = await store.redis.hget(subscriptionKey(prefix, id), 'created_at');
  const isDeleted = await runScript(store, 'deleteSubscription', prefix, {
    id,
    createdAtMs: createdAtMs ?? undefined,
    deletion: randomUUID(),
    topicsStep: topicsStep(),
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: { ...by, action: 'subscription.deleted', subscriptionId: id },
    rankings: rankingKeys(prefix, nowMs).map((key) => ({ key })),
  });
  // Also if it is gone: a first try whose reply was lost may have deleted it.
  await afterChange(`The subscription is deleted. ${NOT_ANNOUNCED}`, announceTopics(store, prefix));
  return isDeleted;
}

function encodeFields(subscription: StoredSubscription): Record<string, string | number> {
  return {
    ...(subscription.key !== null && { key: subscription.key }),
    url: subscription.url,
    event_types: subscription.eventTypes === 'all' ? 'all' : subscription.eventTypes.join(' '),
    environment: subscription.environment,
    description: subscription.description,
    status_reason: subscription.statusReason ?? '',
    updated_at: subscription.updatedAtMs,
    secret: subscription.sealedSecret,
    previous_secret: subscription.previousSealedSecret ?? '',
    previous_until: subscription.previousSecretUntilMs,
    rotated_at: subscription.secretRotatedAtMs ?? '',
    last_validation: subscription.lastValidation ? encodeValidation(subscription.lastValidation) : '',
    takes_events: subscription.takesEvents ? 1 : 0,
  };
}

function decode(id: string, record: Record<string, string>): StoredSubscription | undefined {
  const { status, url = '', description = '', event_types: types = 'all', secret = '', revision = '' } = record;
  if (status === undefined || status === DELETED) return undefined;
  return {
    id,
    key: record.key ?? null,
    url,
    eventTypes: types === 'all' ? types : (types.split(' ') as Exclude<Subscription['eventTypes'], 'all'>),
    environment: wordOf(SUBSCRIPTION_ENVIRONMENTS, 'environment', record.environment),
    description,
    status: status === RESUMING ? 'active' : wordOf(SUBSCRIPTION_STATUSES, 'status', status),
    resuming: status === RESUMING,
    statusReason: (record.status_reason as StatusReason | '' | undefined) || null,
    consecutiveFailures: Number(record.consecutive_failures ?? 0),
    createdAtMs: Number(record.created_at),
    updatedAtMs: Number(record.updated_at),
    lastResume: decodeLastResume(record),
    pausedAtMs: status === 'paused' && record.paused_at ? Number(record.paused_at) : null,
    sealedSecret: secret,
    previousSealedSecret: record.previous_secret || null,
    previousSecretUntilMs: Number(record.previous_until),
    secretRotatedAtMs: record.rotated_at ? Number(record.rotated_at) : null,
    takesEvents: record.takes_events === '1',
    lastValidation: record.last_validation ? decodeValidation(record.last_validation) : null,
    revision,
  };
}

function decodeLastResume(record: Record<string, string>): LastResume | null {
  const outcome = RESUME_OUTCOMES.find((known) => known === record.resume_outcome);
  const atMs = Number(record.resume_at);
  // It is only shown: a damaged time must not keep the address from its deliveries.
  return outcome && Number.isSafeInteger(atMs) ? { atMs, outcome, deliveryId: record.trial ?? null } : null;
}

function encodeValidation({ response, connection, ...found }: Validation): string {
  return JSON.stringify([found, encodeCameBack({ response, connection })]);
}

function decodeValidation(text: string): Validation {
  const [found, cameBack] = JSON.parse(text) as [Omit<Validation, keyof CameBack>, string];
  return { ...found, ...decodeCameBack(cameBack) };
}
