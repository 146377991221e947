/**
 * Declares the Lua scripts: the arguments of each, in order, and its result. script.ts explains how arguments are
 * written, script-replies.ts reads the results. Each file in lua/ says what its script does.
 */
import { ERASURE_STATUSES, type EventRef, REPLAY_STATUSES } from '@posthorn/core';
import type { Cluster, Redis } from 'ioredis';
import { countingChange } from './changes.ts';
import { HELD_NOW } from './constants.ts';
import { FIRST_FORMAT } from './format/formats.ts';
import type { StoredFormat } from './format/stored-format.ts';
import { replyError } from './redis/storage-errors.ts';
import { composeScript, encodeArguments, type Script, script, takesFormat, type Values } from './script.ts';
import {
  CREATED_STATES,
  createdState,
  finishedJob,
  isOne,
  list,
  nothing,
  oneOf,
  parkedDeliveries,
  REPLAY_REFUSALS,
  recordedFailure,
  recordedSuccesses,
  records,
  storedEvent,
  TRY_NOW_REFUSALS,
  takenJobs,
} from './script-replies.ts';

export type {
  CreatedState,
  EventRecord,
  EventReply,
  FoundJob,
  ReplayRefusal,
  TryNowRefusal,
} from './script-replies.ts';

const trialKind = oneOf(['sent', 'waiting', 'over']);
const triedNow = oneOf(['tried', ...TRY_NOW_REFUSALS]);
const leaseState = oneOf(['renewed', 'lost']);
const overdueOrNot = oneOf(['overdue', 'not_overdue', 'superseded']);

/** What a script that takes jobs is told of the worker, and of the locks: see `ofWorker` in jobs.ts. */
const OF_WORKER = 'lockMs nowMs:number knownEvent? spansPartitions:flag perAddress:number busy? dueBeforeMs:number';

/** Of each subscription in a directory; see lua/lib/listed.lua. */
const LISTED_FIELDS = 9;

/**
 * Some replies say more than is decoded here, such as the attempts of what `release` or `sendTrial` has released, and
 * the deliveries that `endCancelled` and `eraseDeliveries` have ended: `tests/model/explain.ts` judges the step by
 * that.
 */
export const scripts = {
  storeEvents: script(
    'oldestMs lifeMs topicsHome ...partitions(home partition topicsVersion? slice searchUntilMs eventCount) ...events(event kind nowMs text expiresAtMs other? isPart? terms entry deliveryCount) ...deliveries(subscriptionId deliveryId deliveryHome?)',
    (reply) => list(reply).map(storedEvent),
  ),
  createDeliveries: script(
    'event kind nowMs oldestMs lifeMs eventPartition? ...deliveries(subscriptionId deliveryId)',
    (reply) => list(reply).map(createdState),
  ),
  claimFanOut: script('event beforeMs:number afterMs:number nowMs', isOne),
  keepJoint: script('event untilMs:number', nothing),
  shortenEvents: script('untilMs ...deliveries(event count position)', nothing),
  findOldestPending: script('', (reply) => list(reply).map(Number)),
  hold: script('id generation subscriptionId', isOne),
  recordFailure: script(
    'id number:number attempt endedAtMs:number nextAttemptAtMs? reason? neededUntilMs pauseAfter:number maxAttempts? retentionMs:number response?',
    recordedFailure,
  ),
  lookForJobs: script('...partitions(home)', (reply) =>
    list(reply).map((due) => (Array.isArray(due) ? replyError(String(due[0])) : due === '' ? undefined : Number(due))),
  ),
  takeJobs: script(`${OF_WORKER} ...takes(home token limit) ...marked(home token limit)`, takenJobs),
  finishJob: script(`jobId token nextToken? ${OF_WORKER}`, finishedJob),
  recordSuccesses: script(
    `maxAttempts? retentionMs:number ${OF_WORKER} ...successes(home id number attempt endedAtMs expiresAtMs response? responsesUntilMs? jobId token nextToken? laneToken? parkedFirst?)`,
    recordedSuccesses,
  ),
  watchWorkers: script('owner? nextOwner checkMs:number maxChecks:number limit:number goesOn:flag', (reply) => {
    const [state, putBack, isMore] = list(reply);
    return { state: state === '' ? undefined : leaseState(state), putBack: Number(putBack), isMore: isOne(isMore) };
  }),
  putBackLost: script('...lost(token) ...known(id)', Number),
  endDeliveries: script(
    'reason nowMs:number expiresAtMs retentionMs:number onlyHeld:flag generation? ...deliveries(id)',
    (reply) => list(reply).map(String),
  ),
  parkOverdue: script('id generation subscriptionId nowMs:number dueBeforeMs:number', overdueOrNot),
  parkJobs: script(`${OF_WORKER} ...jobs(home id generation subscriptionId jobId token nextToken?)`, parkedDeliveries),
  release: script('nowMs:number ...lanes(home lane subscriptionId limit)', (reply) =>
    list(reply).map((lane) => {
      if (typeof lane === 'string') return replyError(lane);
      return records(lane, 4).map(([, generation, event]) => ({
        isHeld: generation === HELD_NOW,
        event: event as EventRef,
      }));
    }),
  ),
  sendTrial: script('subscriptionId nowMs:number retentionMs:number', (reply) => {
    const [kind, deliveryId] = list(reply).map(String);
    return trialKind(kind) === 'sent' ? deliveryId : undefined;
  }),
  tryNow: script('id tryId nowMs:number retentionMs:number auditEntry:audit?', triedNow),
  rescue: script('key afterMs? afterId? beforeMs:number limit nowMs:number', (reply) => {
    const [lookedAt, read, rescued, ms, id, problem] = list(reply);
    const counts = { lookedAt: Number(lookedAt), read: Number(read), rescued: Number(rescued) };
    return { ...counts, last: { ms: Number(ms), id: String(id) }, problem: String(problem) };
  }),
  saveSubscription: script(
    'id saveId expectedRevision status createdAtMs topics topicsStep:number nowMs:number retentionMs:number auditEntry:audit? statusReason? ...fields(field value)',
    (reply) => (reply === -1 ? { isSaved: false } : { isSaved: true, isTopicChange: isOne(list(reply)[1]) }),
  ),
  deleteSubscription: script(
    'id createdAtMs? deletion topicsStep:number nowMs retentionMs:number auditEntry:audit ...rankings(key)',
    isOne,
  ),
  clearDeleted: script('id deletion? lifeMs', nothing),
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
  closeReplayBatch: script('id cancellation?', nothing),
  stepReplay: script(
    'id cursor? nextCursor? isLast:flag lookedAt nowMs:number oldestMs lifeMs retentionMs:number ...candidates(failedId firstId newId)',
    isOne,
  ),
  judgeReplay: script('id hasPassed:flag nowMs:number retentionMs:number', isOne),
  continueReplay: script(
    'id decision nowMs:number lifeMs retentionMs:number auditEntry:audit',
    oneOf(['continued', 'gone', ...REPLAY_STATUSES]),
  ),
  cancelReplay: script(
    'id decision nowMs:number lifeMs:number retentionMs:number auditEntry:audit',
    oneOf(['now_cancelled', 'gone', ...REPLAY_STATUSES]),
  ),
  endCancelled: script(
    'id swept? nextSwept? isLast:flag nowMs:number expiresAtMs retentionMs:number ...deliveries(deliveryId)',
    (reply) => isOne(list(reply)[0]),
  ),
  startErasure: script(
    'id maxOpen:number nowMs:number listedMs:number retentionMs:number auditEntry:audit? ...fields(field value)',
    isOne,
  ),
  advanceErasure: script(
    'id decision from to nowMs:number retentionMs:number auditEntry:audit? ...fields(field value)',
    oneOf(['advanced', 'gone', ...ERASURE_STATUSES]),
  ),
  scanEvents: script('cursor run? pattern limit', (reply) => {
    const [cursor, run, found] = list(reply);
    return { cursor: String(cursor), run: String(run), keys: list(found).map(String) };
  }),
  moveScan: script('cursor? nextCursor? run? lifeMs ...erasures(id passes)', nothing),
  findEvent: script('id event dueAtMs deliveries unsent lifeMs', nothing),
  eraseDeliveries: script('endsUnsent:flag nowMs:number expiresAtMs retentionMs:number ...deliveries(id)', (reply) =>
    Number(list(reply)[0]),
  ),
  eraseEvent: script('id event text search copies deliveries ended responses', nothing),
  appendAudit: script('entryId nowMs:number retentionMs:number auditEntry:audit', nothing),
  addCounts: script('key lifeMs ...counts(field count)', nothing),
  addAddressCounts: script(
    'rankingKey slowKey lifeMs healthLifeMs nowMs:number minute:number ...addresses(key subscriptionId succeeded failed totalMs url failedInARow succeededInARow firstFailedAtMs lastSucceededAtMs errors long)',
    String,
  ),
  heartbeat: script('id state forgetAfterMs:number', nothing),
  aliveWorkers: script('withinMs:number', (reply) =>
    records(reply, 2).map(([state = '', seenAgoMs]) => ({ state, seenAgoMs: Number(seenAgoMs) })),
  ),
  pruneIndex: script('key beforeMs offset:number limit:number', (reply) => {
    const [lookedAt, removed] = list(reply).map(Number);
    return { lookedAt: lookedAt ?? 0, removed: removed ?? 0 };
  }),
  pruneSucceeded: script('after? beforeMs limit', (reply) => {
    const [lookedAt, removed, last] = list(reply);
    return { lookedAt: Number(lookedAt), removed: Number(removed), last: String(last) };
  }),
  lease: script('key holder lifeMs', isOne),
  giveUpLease: script('key holder', nothing),
  reportedDropped: script('count:number', nothing),
  joinInstallation: script('id? state isEmpty:flag known? partitions oldest:number newest:number version', (reply) => {
    const [format, raisedBy, oldestStored, partitions, redisMs, begunAt, hasOthers, registrations = ''] =
      list(reply).map(String);
    if (format === undefined) return undefined;
    return {
      format: Number(format),
      raisedBy: raisedBy || undefined,
      oldestStored: Number(oldestStored),
      partitions: Number(partitions),
      redisMs: Number(redisMs),
      begunAt: begunAt || undefined,
      hasOthers: hasOthers === '1',
      registrations,
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
export type ScriptName = keyof Scripts;
/** What a caller passes to a script. */
export type ScriptValues<N extends ScriptName> = Values<Scripts[N]['declaration']>;
export type ScriptResult<N extends ScriptName> = ReturnType<Scripts[N]['decode']>;

/** A record as a list of fields and values, for a hash. */
export function fieldList(
  record: Readonly<Record<string, string | number>>,
): { field: string; value: string | number }[] {
  return Object.entries(record).map(([field, value]) => ({ field, value }));
}

/** The scripts of the console that change nothing that an operator sees. */
const CHANGE_NOTHING: ReadonlySet<ScriptName> = new Set<ScriptName>([
  'aliveWorkers',
  'findOldestPending',
  'joinInstallation',
  'keepJoint',
  'pruneIndex',
  'readChanges',
  'readInstallation',
  'readListed',
  'scanListed',
]);

const texts = new Map<string, string>();
/** The scripts that are sent the stored format, as their first argument. */
export const withFormat = new Set<string>();

/** Gives a connection one command for each script. Throws where a script's file is missing. */
export function defineScripts(redis: Redis | Cluster): void {
  for (const [name, script] of Object.entries(scripts)) {
    const lua = texts.get(name) ?? composeScript(name, script);
    texts.set(name, lua);
    if (takesFormat(lua)) withFormat.add(name);
    redis.defineCommand(commandName(name), { lua, numberOfKeys: 1 });
  }
}

/**
 * Runs a script on the partition whose keys begin with `prefix`. Rejects with `StartError` if this process can't read
 * what is stored any more.
 */
export async function runScript<N extends ScriptName>(
  store: { redis: Redis | Cluster; format?: StoredFormat },
  name: N,
  prefix: string,
  values: ScriptValues<N>,
): Promise<ScriptResult<N>> {
  const script: Script<Scripts[N]['declaration'], unknown> = scripts[name];
  const commands = store.redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>;
  const unconfirmed = store.format?.confirm(prefix);
  if (unconfirmed) await unconfirmed;
  const args = encodeArguments(script, values);
  if (withFormat.has(name)) args.unshift(store.format?.current() ?? FIRST_FORMAT);
  const send = () => commands[commandName(name)]!(prefix, ...args);
  let reply: unknown;
  try {
    reply = await (CHANGE_NOTHING.has(name) ? send() : countingChange(send));
  } catch (error) {
    throw nameLine(error, name);
  }
  return script.decode(reply) as ScriptResult<N>;
}

/**
 * Adds the script and the text of the line to an error in a script: Redis has a hash and a number of the composed text.
 */
function nameLine(error: unknown, name: ScriptName): unknown {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return error;
  const [, number] = /\buser_script:(\d+)/.exec(error.message) ?? [];
  const line = texts.get(name)?.split('\n')[Number(number) - 1];
  error.message += ` (${name}${line === undefined ? '' : `: ${line.trim()}`})`;
  return error;
}

function commandName(script: string): string {
  return `script_${script}`;
}
