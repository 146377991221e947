/**
 * Maps each script that Redis has run to a step of the rules: the model takes the same step, and the result must be the
 * same.
 */
import { expect } from '@jest/globals';
import type { AttemptError, FailureReason } from '@posthorn/core';
import { decodeKind } from '../../packages/store/src/events/event-record.ts';
import { withFormat } from '../../packages/store/src/scripts.ts';
import {
  type Address,
  attempted,
  type Delivery,
  ended,
  held,
  isOver,
  isOverdue,
  isOverdueBehindOthers,
  made,
  needsTrial,
  OVERDUE_PER_SECOND,
  open,
  operations,
  released,
  replayRefusal,
  tryNowRefusal,
} from './rules.ts';

/** The state that should be stored. */
export interface Model {
  addresses: Map<string, Address>;
  deliveries: Map<string, Delivery>;
  /** The replays of an event to an address, by its first delivery. */
  replays: Map<string, { id: string; createdAtMs: number }[]>;
  /** The effect of the current operation on an address. */
  operation: (address: Address) => Address | undefined;
  /** The texts of recorded attempts, by delivery and number: a call that is sent again has the same. */
  recorded: Map<string, string>;
  /** Attempts that an operator asked for before their time: delivery and number. */
  triedNow: Set<string>;
  /** The calls by which they were made: one that is sent again changes nothing. */
  tryIds: Set<string>;
  /** Deliveries that were made again under their id, because the event was published again after it had expired. */
  replaced: Set<string>;
  /** Number of pauses by the rules so far. */
  pauses: number;
}

type Args = readonly string[];

/** The arguments of a script as it is declared, without its partition prefix and the stored format. */
function valuesOf(script: string, [, ...args]: Args): Args {
  return withFormat.has(script) ? args.slice(1) : args;
}

const groups = (size: number, flat: Args) =>
  Array.from({ length: flat.length / size }, (_, i) => flat.slice(i * size, (i + 1) * size));

/** What a script has released from each lane: delivery, generation, event, attempts. */
function releasedLanes([, ...args]: Args, answer: unknown): { lane: string; all: Args[] }[] {
  return groups(4, args).map(([, lane = ''], i) => ({ lane, all: groups(4, (answer as string[][])[i] ?? []) }));
}

const STATES: Readonly<Record<string, string>> = { p: 'pending', h: 'held', w: 'without_first_job', n: 'none' };

/** The events that `storeEvents` has stored, with their deliveries: numbers of groups, then the groups. */
function storedEvents([, , , partitions, count, ...rest]: Args, answer: unknown) {
  const eventsAt = 6 * Number(partitions);
  const deliveriesAt = eventsAt + 10 * Number(count);
  const events = groups(10, rest.slice(eventsAt, deliveriesAt));
  const deliveries = groups(3, rest.slice(deliveriesAt));
  expect(answer).toHaveLength(events.length);
  return events.flatMap(([event = '', kind = '', nowMs = '', ...more], i) => {
    const own = deliveries.splice(0, Number(more.at(-1)));
    const letters = (answer as unknown[])[i];
    // One that was stored before, or that was matched by topics that have changed, has a list.
    if (typeof letters !== 'string') return [];
    return [{ event, kind, nowMs, deliveries: own, states: Array.from(letters, (letter) => STATES[letter]) }];
  });
}

/** Removes a delivery that has expired, or is replaced. */
export function forget({ deliveries, recorded }: Model, id: string): void {
  deliveries.delete(id);
  for (const key of recorded.keys()) if (key.startsWith(`${id} `)) recorded.delete(key);
}

/** The first argument of a script is its partition prefix; the others are declared in packages/store's scripts.ts. */
export function explain(model: Model, script: string, sent: Args, answer: unknown): void {
  const args = valuesOf(script, sent);
  const { addresses, deliveries } = model;
  const addressOf = (delivery: Delivery) => addresses.get(delivery.address)!;
  const set = (id: string, delivery: Delivery | undefined) => delivery && deliveries.set(id, delivery);
  const make = (eventId: string, kind: string, nowMs: string, pairs: Args[], states: readonly unknown[]) => {
    const isTest = decodeKind(Number(kind)).type === 'webhook.test';
    for (const [i, [address, id]] of pairs.entries()) {
      const old = deliveries.get(id!);
      if (old && old.createdAtMs >= Number(nowMs)) {
        expect(['pending', 'held', 'without_first_job']).toContain(states[i]);
        continue;
      }
      const delivery = made({ eventId, isTest, address: address! }, addresses.get(address!)!, Number(nowMs));
      expect(states[i]).toBe(delivery?.status ?? 'none');
      if (old && delivery) {
        forget(model, id!);
        model.replaced.add(id!);
      }
      set(id!, delivery);
    }
  };
  const replay = (failedId: string, firstId: string, id: string, nowMs: string) => {
    const failed = deliveries.get(failedId)!;
    set(id, made(failed, addressOf(failed), Number(nowMs)));
    const all = model.replays.get(firstId) ?? [];
    model.replays.set(firstId, [...all, { id, createdAtMs: Number(nowMs) }]);
  };
  const record = ([id = '', number = '', text = '', endedAt = '']: Args, error: AttemptError | null) => {
    const delivery = deliveries.get(id);
    if (!delivery) return undefined;
    const before = addressOf(delivery);
    const isAgain = model.recorded.get(`${id} ${number}`) === text;
    const next = attempted(id, delivery, before, { number: Number(number), error, endedAtMs: Number(endedAt) });
    set(id, next.delivery);
    addresses.set(delivery.address, next.address);
    if (next.answer === 'recorded') model.recorded.set(`${id} ${number}`, text);
    return { before, next, isAgain, answer: isAgain ? 'recorded' : next.answer };
  };
  const park = (id: string, lane: unknown, nowMs: number, beforeMs: number, otherwise: string) => {
    if (lane === 'superseded') return;
    const delivery = deliveries.get(id)!;
    // In between, it depends on whether others of the address are overdue.
    if (isOverdue(delivery, nowMs, beforeMs)) expect(lane).toBe('overdue');
    else if (!isOverdueBehindOthers(delivery, nowMs)) expect(lane).toBe(otherwise);
  };
  switch (script) {
    case 'storeEvents':
      for (const { event, kind, nowMs, deliveries, states } of storedEvents(args, answer))
        make(event, kind, nowMs, deliveries, states);
      return;
    case 'createDeliveries':
      make(args[0]!, args[1]!, args[2]!, groups(2, args.slice(6)), answer as string[]);
      return;
    case 'hold': {
      const delivery = deliveries.get(args[0]!);
      const next = delivery && held(args[0]!, delivery, addressOf(delivery));
      // 0 is also the result for a job that is no longer the delivery's.
      if (answer === 1) {
        expect(next).toBeDefined();
        set(args[0]!, next);
      }
      return;
    }
    case 'recordFailure': {
      const [, , , , nextAt, reason] = args;
      // The error before a retry is not among the arguments, and makes no difference.
      const recorded = record(args, (reason || 'status') as AttemptError);
      if (!recorded) {
        expect((answer as unknown[])[0]).toBe('over');
        return;
      }
      const { before, next, isAgain, answer: kind } = recorded;
      const paused = next.address.status === 'paused' && before.status === 'active' && !before.resuming;
      const [actualKind, hasPaused] = answer as unknown[];
      expect(actualKind).toBe(kind);
      if (!isAgain) expect(hasPaused).toBe(paused ? 1 : 0);
      if (next.answer === 'recorded' && nextAt !== '') expect(Number(nextAt)).toBe(next.delivery.dueAtMs);
      if (paused) model.pauses += 1;
      return;
    }
    case 'recordSuccesses': {
      const [ended] = answer as [unknown[][]];
      for (const [i, [, ...success]] of groups(13, args.slice(9)).entries())
        expect(ended[i]![0]).toBe(record(success, null)?.answer ?? 'over');
      return;
    }
    case 'endDeliveries': {
      const [reason, nowMs, , , only, generation, ...ids] = args;
      const wanted = ids.filter((id) => {
        const delivery = deliveries.get(id);
        return delivery && !isOver(delivery) && (only === '' || delivery.status === 'held');
      });
      // Nor one that has another job by now.
      if (generation !== '' && (answer as string[]).length === 0) return;
      expect(answer).toEqual(wanted);
      for (const id of wanted) {
        const why = reason as Extract<FailureReason, 'expired' | 'subscription_deleted'>;
        set(id, ended(deliveries.get(id)!, why, Number(nowMs)));
      }
      return;
    }
    case 'parkOverdue': {
      const [id = '', , , nowMs, beforeMs] = args;
      park(id, answer, Number(nowMs), Number(beforeMs), 'not_overdue');
      return;
    }
    case 'parkJobs': {
      const [, nowMs, , , , , beforeMs] = args;
      const [parked] = answer as [unknown[][]];
      for (const [i, [, id = '']] of groups(7, args.slice(7)).entries()) {
        const [lane, code] = parked[i]!;
        park(id, lane, Number(nowMs), Number(beforeMs), 'parked');
        // Only together with its job: another worker may have that by now.
        if (lane !== 'superseded') expect([id, code]).toEqual([id, 0]);
      }
      return;
    }
    case 'release': {
      const dueAtMs = Number(args[0]);
      for (const { lane, all } of releasedLanes(args, answer)) {
        const gone = all.filter(([, generation]) => generation !== '-1');
        // Maintenance runs twice a second.
        if (lane !== 'parked') expect(gone.length).toBeLessThanOrEqual(OVERDUE_PER_SECOND / 2);
        for (const [id = '', generation, , attempts] of all) {
          const delivery = deliveries.get(id)!;
          expect(isOver(delivery)).toBe(false);
          expect(Number(attempts)).toBe(delivery.attempts);
          const overdue = lane === 'overdue' ? { dueAtMs: Math.max(delivery.dueAtMs ?? 0, dueAtMs) } : {};
          set(
            id,
            generation === '-1' ? held(id, delivery, addressOf(delivery)) : { ...released(delivery), ...overdue },
          );
        }
      }
      return;
    }
    case 'tryNow': {
      const [id = '', tryId = '', nowMs] = args;
      if (model.tryIds.has(tryId)) {
        expect(answer).toBe('tried');
        return;
      }
      const delivery = deliveries.get(id);
      if (!delivery) {
        expect(answer).not.toBe('tried');
        return;
      }
      expect(answer).toBe(tryNowRefusal(id, delivery, addressOf(delivery), Number(nowMs)) ?? 'tried');
      if (answer !== 'tried') return;
      set(id, { ...delivery, dueAtMs: Number(nowMs) });
      model.tryIds.add(tryId);
      model.triedNow.add(`${id} ${delivery.attempts + 1}`);
      return;
    }
    case 'sendTrial': {
      const [subscriptionId = '', nowMs] = args;
      const address = addresses.get(subscriptionId)!;
      const [kind, id = '', attempts] = answer as string[];
      const trial = address.trial === null ? undefined : deliveries.get(address.trial);
      const ofAddress = [...deliveries].filter(([, one]) => one.address === subscriptionId);
      const heldOnes = ofAddress.filter(([, one]) => one.status === 'held').map(([, one]) => one);
      if (kind === 'sent') {
        expect(needsTrial(address, trial, Number(nowMs))).toBe(true);
        const oldest = heldOnes.sort((a, b) => a.createdAtMs - b.createdAtMs).slice(0, 100);
        expect(deliveries.get(id)).toMatchObject({ address: subscriptionId, status: 'held' });
        expect(Number(attempts)).toBe(Math.min(...oldest.map((one) => one.attempts)));
        set(id, released(deliveries.get(id)!));
        addresses.set(subscriptionId, { ...address, trial: id });
      } else if (kind === 'waiting') {
        expect(needsTrial(address, trial, Number(nowMs)) && heldOnes.length > 0).toBe(false);
      } else if (address.resuming) {
        expect(heldOnes).toEqual([]);
        addresses.set(subscriptionId, open(address));
      }
      return;
    }
    case 'replayDelivery': {
      const [address = '', of = '', first = '', id = '', nowMs = ''] = args;
      if (deliveries.has(id)) {
        expect(answer).toBe('without_first_job');
        return;
      }
      const failed = deliveries.get(of);
      const refusal = failed ? replayRefusal(failed, addresses.get(address)!, Number(nowMs)) : 'gone';
      if (refusal === undefined) replay(of, first, id, nowMs);
      expect(answer).toBe(refusal ?? deliveries.get(id)?.status);
      return;
    }
    case 'stepReplay': {
      if (answer === 0) return;
      const nowMs = args[5]!;
      for (const [of = '', first = '', id = ''] of groups(3, args.slice(9))) {
        const failed = deliveries.get(of);
        if (!failed) continue;
        const refusal = replayRefusal(failed, { ...addressOf(failed), status: 'active' }, Number(nowMs));
        const newest = [...(model.replays.get(first) ?? [])]
          .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
          .at(-1);
        const onItsWay = newest !== undefined && deliveries.get(newest.id)?.status !== 'failed';
        const gone = addressOf(failed).status === 'deleted';
        if (refusal === undefined && !onItsWay && !gone && !deliveries.has(id)) replay(of, first, id, nowMs);
      }
      return;
    }
    case 'eraseDeliveries': {
      const [endsUnsent, nowMs, , , ...ids] = args;
      const [left, ...over] = (answer as unknown[]).map(String);
      if (endsUnsent === '') expect(over).toEqual([]);
      for (const id of over) {
        expect([id, isOver(deliveries.get(id)!)]).toEqual([id, false]);
        set(id, ended(deliveries.get(id)!, 'erased', Number(nowMs)));
      }
      const there = ids.filter((id) => deliveries.has(id));
      const finished = there.filter((id) => isOver(deliveries.get(id)!));
      expect(Number(left)).toBe(there.length - finished.length);
      for (const id of finished) set(id, { ...deliveries.get(id)!, erased: true });
      return;
    }
    case 'endCancelled': {
      const nowMs = args[4]!;
      for (const id of (answer as unknown[]).slice(1).map(String)) {
        const delivery = deliveries.get(id)!;
        expect([id, isOver(delivery), delivery.attempts]).toEqual([id, false, 0]);
        set(id, ended(delivery, 'cancelled', Number(nowMs)));
      }
      return;
    }
    case 'saveSubscription':
      if (answer !== -1 && addresses.has(args[0]!)) {
        const before = addresses.get(args[0]!)!;
        const next = model.operation(before)!;
        expect(next).toBeDefined();
        const [status] = answer as unknown[];
        const needsNoTrial = next.resuming && !before.resuming && status === 'active';
        if (needsNoTrial) {
          const ofAddress = [...deliveries.values()].filter(({ address }) => address === args[0]);
          expect(ofAddress.filter(({ status }) => status === 'held')).toEqual([]);
        }
        addresses.set(args[0]!, needsNoTrial ? open(next) : next);
      }
      return;
    case 'deleteSubscription':
      if (answer === 1) addresses.set(args[0]!, { ...operations.url_changed(), status: 'deleted' });
      return;
    default:
      // The other scripts change nothing that the rules cover.
      return;
  }
}
