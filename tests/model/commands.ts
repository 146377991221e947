/** The possible steps of a story. */
import { DAY_MS, HOUR_MS } from '@posthorn/core';
import fc from 'fast-check';
import { resend } from './processes.ts';
import { type Operation, PAUSE_AFTER } from './rules.ts';
import { ADDRESSES, type Outcome, type System, WORKERS } from './system.ts';

type Command = fc.AsyncCommand<System, System>;

/** A step with its parameters; the system is checked after each. */
function happening<T>(
  name: string,
  parameters: fc.Arbitrary<T>,
  happen: (system: System, given: T) => unknown,
  possible: (system: Readonly<System>, given: T) => boolean = () => true,
): fc.Arbitrary<Command> {
  return parameters.map((given) => ({
    check: (system) => possible(system, given),
    async run(system) {
      await happen(system, given);
      await system.check();
    },
    toString: () => `${name}(${JSON.stringify(given)})`,
  }));
}

const SECOND = 1_000;
const worker = fc.nat(WORKERS - 1);
const address = fc.constantFrom(...ADDRESSES);
/** The number of steps after which a process stops: usually more than its work takes, otherwise fewer. */
const steps = fc.oneof(
  { weight: 2, arbitrary: fc.constant(Number.MAX_SAFE_INTEGER) },
  { weight: 1, arbitrary: fc.nat(12) },
);
const outcome = fc.constantFrom<Outcome>('ok', 'error', 'timeout', 'outage');
const somewhere = fc.nat(1_000);

/** A step that is listed more than once is chosen more often. */
const publish = happening('publish', steps, (on, after) => on.publish(on.published++, after));
const take = happening('take', fc.tuple(worker, steps), (on, [which, after]) => on.take(which, after));
const answer = happening(
  'answer',
  fc.tuple(somewhere, outcome),
  (on, [which, what]) => on.answer(which, what),
  (on) => on.inFlight.length > 0,
);
const live = happening('live', fc.tuple(fc.integer({ min: 1, max: 12 }), outcome), (on, [rounds, what]) =>
  on.live(rounds, what),
);
const advance = happening(
  'advance',
  fc.constantFrom(20, SECOND, 31 * SECOND, 31 * SECOND, 61 * SECOND, HOUR_MS, 13 * HOUR_MS, 10 * DAY_MS, 31 * DAY_MS),
  (on, ms) => on.advance(ms),
);
const operate = happening(
  'operate',
  fc.tuple(
    address,
    fc.constantFrom<Operation>(
      ...(['paused', 'paused', 'resumed', 'resumed', 'acceptable', 'acceptable'] as const),
      ...(['url_changed', 'refused', 'unreachable'] as const),
    ),
  ),
  (on, [which, what]) => on.operate(which, what),
);

export const commands: fc.Arbitrary<Command>[] = [
  ...[publish, publish, publish, take, take, take, take, take, answer, answer, answer, live, live, advance, advance],
  ...[operate, operate],
  happening(
    'publishAgain',
    fc.tuple(somewhere, steps),
    (on, [which, after]) => on.publish(which % on.published, after),
    (on) => on.published > 0,
  ),
  happening('test', fc.tuple(address, steps), (on, [which, after]) => on.test(which, after)),
  happening('listen', fc.tuple(address, fc.constantFrom('both', 'sandbox', 'production')), (on, [which, to]) =>
    on.listen(which, to),
  ),
  happening('rotate', address, (on, which) => on.rotate(which)),
  happening(
    'erase',
    fc.tuple(somewhere, fc.constantFrom('end', 'deliver'), fc.boolean(), steps),
    (on, [which, unsent, isConfirmed, after]) => on.erase(which, unsent, isConfirmed, after),
    (on) => on.published > 0,
  ),
  happening(
    'decideErasure',
    fc.tuple(somewhere, fc.constantFrom('confirm', 'cancel'), fc.constantFrom('end', 'deliver'), steps),
    (on, [which, what, unsent, after]) => on.decideErasure(which, what, unsent, after),
    (on) => on.erasures.length > 0,
  ),
  happening('loseReply', fc.nat(20), (_on, after) => {
    resend.after = after;
  }),
  happening('sweepFanOuts', fc.constant(null), (on) => on.sweepFanOuts()),
  happening('maintain', fc.tuple(worker, steps), (on, [which, after]) => on.maintain(which, after)),
  happening('goOn', worker, (on, which) => on.goOn(which)),
  happening('kill', worker, (on, which) => on.kill(which)),
  happening(
    'replay',
    fc.tuple(somewhere, steps),
    (on, [which, after]) => on.replay(which, after),
    (on) => [...on.model.deliveries.values()].some(({ status }) => status === 'failed'),
  ),
  happening(
    'tryNow',
    fc.tuple(somewhere, steps),
    (on, [which, after]) => on.tryNow(which, after),
    (on) => on.model.deliveries.size > 0,
  ),
  happening('replayAll', fc.tuple(address, fc.boolean()), (on, [which, canary]) => on.replayAll(which, canary)),
  happening('replayBatch', fc.tuple(fc.boolean(), steps), (on, [canary, after]) => on.replayBatch(canary, after)),
  // Steps that hardly ever follow one another by chance: as many deliveries in a row fail as pause an address.
  happening(
    'failUntilPaused',
    fc.nat(1),
    async (on) => {
      for (let i = 0; i < PAUSE_AFTER; i++) await on.publish(on.published++, Number.MAX_SAFE_INTEGER);
      await on.live(8, 'error');
    },
    (_on, rarely) => rarely === 0,
  ),
  // The same: a worker sends a delivery of a bulk replay while the replay is being cancelled.
  happening(
    'cancelHalfway',
    fc.tuple(address, worker, outcome, steps, fc.nat(2)),
    async (on, [which, sender, what, after]) => {
      const all = Number.MAX_SAFE_INTEGER;
      await on.publish(on.published++, all);
      await on.live(8, 'error');
      if (on.model.addresses.get(which)!.status === 'paused') await on.operate(which, 'resumed');
      await on.replayAll(which, false);
      for (let run = 0; run < 2; run++) await on.maintain(sender, all);
      while (await on.take(sender, all));
      await on.decide(0, 'cancel', after);
      await on.maintain(sender, all);
      while (on.inFlight.length > 0) await on.answer(0, what);
    },
    (_on, [, , , , rarely]) => rarely === 0,
  ),
  // The same: a worker has no slot for a job, and parks its delivery after another worker has got the job.
  happening(
    'parkTooLate',
    fc.tuple(worker, fc.nat(3)),
    async (on, [which]) => {
      const all = Number.MAX_SAFE_INTEGER;
      for (let i = 0; i < 3; i++) await on.publish(on.published++, all);
      // As many as a worker that knows no address may have in flight, and one more.
      for (const after of [all, all, 0]) await on.take(which, after);
      await on.advance(31 * SECOND);
      await on.take((which + 1) % WORKERS, all);
      await on.goOn(which);
    },
    (_on, [, rarely]) => rarely === 0,
  ),
  // The same: no worker runs until an event has expired, and it is published again before or after its delivery ends.
  happening(
    'publishExpired',
    fc.tuple(worker, outcome, fc.nat(3), fc.nat(3), fc.nat(1)),
    async (on, [which, what, before, after]) => {
      const all = Number.MAX_SAFE_INTEGER;
      const number = on.published++;
      await on.publish(number, all);
      for (let i = 0; i < before; i++) await on.take(which, all);
      while (on.inFlight.length > 0) await on.answer(0, what);
      await on.advance(31 * DAY_MS);
      for (let i = 0; i < after; i++) await on.take(which, all);
      while (on.inFlight.length > 0) await on.answer(0, what);
      await on.publish(number, all);
    },
    (_on, [, , , , rarely]) => rarely === 0,
  ),
  happening(
    'decide',
    fc.tuple(somewhere, fc.constantFrom('cancel', 'cancel', 'cancelBatch', 'continue'), steps),
    (on, [which, what, after]) => on.decide(which, what, after),
  ),
  // The first address is never deleted and the second one rarely, so that a deletion does not end most stories.
  happening(
    'remove',
    fc.tuple(fc.nat(5), steps),
    (on, [, after]) => on.remove(ADDRESSES[1], after),
    (_on, [rarely]) => rarely === 0,
  ),
];
