/** One chaos run: publish while things break, restore everything, wait until no work is left, check. */
import { setTimeout as wait } from 'node:timers/promises';
import { createPublisher, type Publisher } from '@posthorn/client';
import { HOUR_MS } from '@posthorn/core';
import { type Operate, subscribe } from '../../scripts/api-client.ts';
import { PUBLISHER_KEY } from '../world.ts';
import { type Cast, chaosDir, type Member, startCast, untilReady } from './cast.ts';
import { type Checked, check, type Published } from './check.ts';
import { drill } from './drill.ts';
import { pastPersons, personOf, type RequestedErasure } from './erasures.ts';
import { CALL_LIMIT_MS, callOnce, callUntilAnswered } from './operator.ts';
import { type Random, random } from './random.ts';
import { type Receivers, startReceivers } from './receivers.ts';

interface ChaosOptions {
  seed: number;
  /** How long disturbances last. */
  breakMs: number;
  eventsPerS: number;
  /**
   * Whether workers are also suspended: for some seconds, about as long as others need to take over, and for longer
   * than a job's lock.
   */
  suspend: boolean;
  /** Whether persons are erased, which takes a minute after the last disturbance. */
  erase: boolean;
  /** Whether workers take over the jobs of a dead worker sooner. */
  eager: boolean;
  /** Another checkout: one process of each app runs from it, as during an upgrade. */
  beside?: string | undefined;
  /** The minimum number of published events. */
  leastEvents: number;
  /** Whether a backup is taken and restored during the run. */
  restore?: boolean;
  say: (line: string) => void;
}

const TYPES = ['session.created', 'session.approved', 'session.declined', 'session.expired'] as const;
const ENVIRONMENTS = ['sandbox', 'production'] as const;
/**
 * A job whose lock nobody has a lease for may wait up to 45 s. Nothing else waits longer for its next step, except on a
 * busy machine.
 */
const STUCK_AFTER_MS = 180_000;
/**
 * Longer than the lock of a job, so that another worker takes over a job that the suspended worker still considers its
 * own.
 */
const SUSPEND_MS = 33_000;

export async function runChaos(options: ChaosOptions): Promise<Checked> {
  const { seed, say } = options;
  const chance = random(seed);
  const receivers = await startReceivers(chance);
  const cast = await startCast(
    chaosDir(String(seed)),
    { ingest: 2, worker: 3, console: options.beside === undefined ? 1 : 2 },
    options,
  );
  try {
    const subscriptions = await subscribeAll(cast, receivers, chance);
    say(`${subscriptions.length} subscriptions; things break for ${Math.round(options.breakMs / 1000)} s ...`);
    const urls = cast.members.filter(({ app }) => app === 'ingest').map(({ url }) => url);
    const publishers = [urls, urls.toReversed()].map((url) =>
      createPublisher({ url, key: PUBLISHER_KEY, timeoutMs: CALL_LIMIT_MS, giveUpAfterMs: HOUR_MS }),
    );
    const published = new Map<string, Published>();
    let breaking = true;
    const publishing = publish(publishers, published, () => breaking, options, chance);
    const broken: Record<string, number> = {};
    const erasures: RequestedErasure[] = [];
    const breakFor = (ms: number) =>
      breakThings({ cast, subscriptions, published, erasures, broken }, Date.now() + ms, chance, options);
    const restored = options.restore
      ? await drill(cast, publishers, published, receivers, breakFor, options)
      : undefined;
    if (!options.restore) await breakFor(options.breakMs);
    breaking = false;
    await heal(cast);
    await publishing;
    for (const publisher of publishers) await publisher.close();
    say('No more disturbances. Waiting until no work is left ...');
    receivers.calm();
    const quietAfterMs = await untilQuiet(cast, say);
    say('Checking ...');
    // A restore may bring back what was erased before it (docs/erasure.md).
    const judged = erasures.filter(({ requestedAtMs }) => requestedAtMs > (restored?.restoredAtMs ?? 0));
    return await check({
      cast,
      receivers,
      subscriptions,
      published,
      erasures: judged,
      broken,
      quietAfterMs,
      seed,
      restored,
    });
  } finally {
    await cast.close();
    await receivers.close();
  }
}

export interface ChaosSubscription {
  id: string;
  path: string;
  types: string[];
  /** Every signing secret that it has had. */
  secrets: string[];
}

async function subscribeAll(cast: Cast, receivers: Receivers, chance: Random): Promise<ChaosSubscription[]> {
  const operate: Operate = (method, path, body) => callUntilAnswered(cast, method, path, body);
  const subscriptions: ChaosSubscription[] = [];
  for (const { path } of receivers.paths) {
    const types = TYPES.filter(() => chance.next() < 0.5);
    if (types.length === 0) types.push(chance.pick(TYPES));
    const { id, secret } = await subscribe(operate, receivers.url + path, { event_types: types, description: path });
    subscriptions.push({ id, path, types, secrets: [secret] });
  }
  return subscriptions;
}

/**
 * Two publishers, each with its own first choice of ingest. They repeat an event until it is accepted, so the result of
 * every event is known.
 */
async function publish(
  publishers: Publisher[],
  published: Map<string, Published>,
  isBreaking: () => boolean,
  { eventsPerS, leastEvents, seed }: ChaosOptions,
  chance: Random,
): Promise<void> {
  const running: Promise<unknown>[] = [];
  for (let i = 0; isBreaking() || i < leastEvents; i++) {
    const event = {
      id: `evt_chaos_${seed}_${i}`,
      type: chance.pick(TYPES),
      environment: chance.pick(ENVIRONMENTS),
      created_at: new Date().toISOString(),
      data: {
        id: `s-${i}`,
        status: 'x',
        metadata: { user_id: personOf(i) },
        note: 'n'.repeat(chance.between(0, 300)),
      },
    };
    const one: Published = { event, acceptedAtMs: undefined, duplicate: false };
    published.set(event.id, one);
    const accepting = chance.pick(publishers).publish(event);
    running.push(accepting.then(({ duplicate }) => Object.assign(one, { acceptedAtMs: Date.now(), duplicate })));
    await wait(1_000 / eventsPerS);
  }
  await Promise.all(running);
}

/** Breaks something about once a second, and counts in `broken` how often each thing was done. */
async function breakThings(
  {
    cast,
    subscriptions,
    published,
    erasures,
    broken,
  }: {
    cast: Cast;
    subscriptions: ChaosSubscription[];
    published: ReadonlyMap<string, Published>;
    erasures: RequestedErasure[];
    broken: Record<string, number>;
  },
  endsAt: number,
  chance: Random,
  { suspend: suspends, erase }: ChaosOptions,
): Promise<void> {
  const later: Promise<unknown>[] = [];
  const alive = (app?: Member['app']) =>
    cast.members.filter((member) => !member.stopped && (app === undefined || member.app === app));
  /** A worker, while there is another one. */
  const someWorker = () => (alive('worker').length > 1 ? chance.pick(alive('worker')) : undefined);
  const suspend = async (forMs: () => number) => {
    const member = someWorker();
    if (!member) return;
    const { child } = member.process;
    child.kill('SIGSTOP');
    later.push(wait(forMs()).then(() => child.kill('SIGCONT')));
  };
  const kill = async (member: Member | undefined) => {
    if (!member) return;
    await cast.kill(member);
    later.push(wait(chance.between(200, 2_000)).then(() => cast.start(member)));
  };
  const operate = (path: string, body?: unknown) => callOnce(cast, 'POST', path, body);
  const things: Record<string, () => Promise<unknown> | undefined> = {
    ...(suspends && {
      'suspend a worker': () => suspend(() => SUSPEND_MS),
      'suspend a worker for seconds': () => suspend(() => chance.between(2_000, 8_000)),
    }),
    'kill a worker': () => kill(someWorker()),
    'kill an ingest': () => kill(alive('ingest').length > 0 ? chance.pick(alive('ingest')) : undefined),
    'kill the console': () => kill(alive('console')[0]),
    'restart Redis': () => cast.restartRedis(chance.between(0, 1_500)),
    'cut the way to Redis': async () => {
      cast.proxy.cut();
      await wait(chance.between(100, 3_000));
      cast.proxy.restore();
    },
    'break off an answer of Redis': async () => cast.proxy.cutWithin(),
    'pause an address': () => operate(`/v1/subscriptions/${chance.pick(subscriptions).id}/pause`),
    'resume an address': () => operate(`/v1/subscriptions/${chance.pick(subscriptions).id}/resume`),
    'rotate a secret': async () => {
      const subscription = chance.pick(subscriptions);
      const answer = await operate(`/v1/subscriptions/${subscription.id}/rotate-secret`, { overlap: '20s' });
      if (answer?.status === 200) subscription.secrets.push(answer.body.secret);
      // It may have been done although the response was lost: then nobody knows the secret.
      else subscription.secrets.push('unknown');
    },
    'replay one': async () => {
      const failed = await callOnce(cast, 'GET', '/v1/deliveries?status=failed&limit=20');
      const [one] = failed?.body?.data ?? [];
      if (!one) return;
      // The latest failed delivery is usually at an address that is paused by now.
      await operate(`/v1/subscriptions/${one.subscription_id}/resume`);
      await operate(`/v1/deliveries/${one.id}/replay`);
    },
    'replay all of an address': async () => {
      const { id } = chance.pick(subscriptions.filter(({ path }) => !path.startsWith('/good')));
      await operate(`/v1/subscriptions/${id}/resume`);
      await operate('/v1/replays', { subscription_id: id, canary: chance.between(0, 1) === 1 });
    },
    'replay all of several addresses': async () => {
      const ids = subscriptions.filter(({ path }) => !path.startsWith('/good')).map(({ id }) => id);
      for (const id of ids) await operate(`/v1/subscriptions/${id}/resume`);
      await operate('/v1/replays', { subscription_ids: ids });
    },
    ...(erase && {
      'erase some persons': async () => {
        const persons = pastPersons(published);
        for (let i = 0; i < 3 && persons.length > 0; i++) {
          const person = chance.pick(persons);
          const requestedAtMs = Date.now();
          const unsent = chance.pick(['end', 'deliver']);
          const answer = await operate('/v1/erasures', { user_id: person, confirm: true, unsent });
          // It may have been stored although the response was lost: then it only has to end.
          if (answer?.status === 202) erasures.push({ person, requestedAtMs });
        }
      },
    }),
    'cancel a bulk replay': async () => {
      const answer = await callOnce(cast, 'GET', '/v1/replays?limit=5');
      const replays: { id: string; batch_id: string | null }[] = answer?.body?.data ?? [];
      if (replays.length === 0) return;
      const { id, batch_id: batchId } = chance.pick(replays);
      await operate(batchId === null ? `/v1/replays/${id}/cancel` : `/v1/replay-batches/${batchId}/cancel`);
    },
  };
  // Each at least once.
  const agenda = Object.keys(things);
  while (agenda.length > 0 || Date.now() < endsAt) {
    const name = agenda.shift() ?? chance.pick(Object.keys(things));
    await things[name]!();
    broken[name] = (broken[name] ?? 0) + 1;
    await wait(chance.between(200, 1_500));
  }
  await Promise.all(later);
}

/** Restores the proxy and restarts everything. */
async function heal(cast: Cast): Promise<void> {
  cast.proxy.restore();
  for (const member of cast.members) {
    if (member.stopped) cast.start(member);
    await untilReady(member);
  }
}

/** Resumes paused addresses until no delivery is unfinished. Resolves with the time that took. */
async function untilQuiet(cast: Cast, say: (line: string) => void): Promise<number> {
  const startedAt = Date.now();
  let least = Number.POSITIVE_INFINITY;
  let progressAt = startedAt;
  for (let round = 0; ; round++) {
    const { body } = await callUntilAnswered(cast, 'GET', '/v1/overview');
    const { pending, waiting_for_retry, held } = body.deliveries;
    const { waiting, active, delayed } = body.queue;
    const running = await callUntilAnswered(cast, 'GET', '/v1/replays');
    const isReplaying = running.body.data.some(({ status }: { status: string }) =>
      ['running', 'canary'].includes(status),
    );
    const erasures = await callUntilAnswered(cast, 'GET', '/v1/erasures?limit=250');
    const erasing = erasures.body.data.filter(({ finished_at }: { finished_at: string | null }) => !finished_at).length;
    const open = pending + waiting_for_retry + held + waiting + active + delayed + erasing;
    if (open === 0 && !isReplaying) return Date.now() - startedAt;
    const paused = await callUntilAnswered(cast, 'GET', '/v1/subscriptions?status=paused&limit=250');
    for (const { id } of paused.body.data) {
      await callUntilAnswered(cast, 'POST', `/v1/subscriptions/${id}/resume`);
    }
    if (round % 20 === 0) say(`  pending ${pending}, waiting ${waiting_for_retry}, held ${held}, erasures ${erasing}`);
    if (open < least) [least, progressAt] = [open, Date.now()];
    if (Date.now() - progressAt > STUCK_AFTER_MS) return Number.POSITIVE_INFINITY;
    await wait(500);
  }
}
