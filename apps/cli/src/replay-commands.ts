/** The commands for replays: of one delivery, and bulk replays of one address or several. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { EVENT_TYPES, FAILURE_REASONS } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { addressColumns } from './names.ts';
import { fromOption, instantOf, limitOption, toOption } from './options.ts';
import { showAll } from './pages.ts';
import type { Printer } from './print.ts';
import { bodyOf, isBatch, pathOf, type ReplayOptions, replayAll } from './replay.ts';
import { rehearseEverywhere, replayEverywhere } from './replay-everywhere.ts';
import { UserError } from './user-error.ts';

const columns = {
  id: (item: schemas.Replay) => item.id,
  created: (item: schemas.Replay) => item.created_at,
  status: (item: schemas.Replay) => item.status,
  replayed: (item: schemas.Replay) => `${item.replayed}/${item.total}`,
  skipped: (item: schemas.Replay) => item.skipped,
  delivered: (item: schemas.Replay) => item.outcome.delivered,
  failed: (item: schemas.Replay) => item.outcome.failed,
  waiting: (item: schemas.Replay) => item.outcome.waiting,
  cancelled: (item: schemas.Replay) => item.outcome.cancelled,
  operator: (item: schemas.Replay) => item.operator,
};

const batchColumns = {
  id: (item: schemas.ReplayBatch) => item.id,
  addresses: (item: schemas.ReplayBatch) => item.addresses,
  deliveries: (item: schemas.ReplayBatch) => item.total,
};

export function addReplayCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('replays')
    .description('list bulk replays, newest first')
    .option('--subscription <id>')
    .option('--batch <id>', 'started together for several addresses')
    .addOption(limitOption())
    .action(async ({ subscription, batch, limit }) => {
      const query = { subscription_id: subscription, batch_id: batch } satisfies schemas.FiltersOf<
        typeof schemas.replaysQuerySchema
      >;
      const replays = await client.list(schemas.replaySchema, '/v1/replays', query, limit);
      const ofAddress = await addressColumns(client, print.isJson() ? [] : replays);
      print.list(replays, { ...columns, ...ofAddress }, 'No bulk replays.', limit);
    });
  addReplayCommand(program, client, print);

  program
    .command('cancel <replay>')
    .description('cancel a bulk replay, or a batch: what has had no attempt yet is not sent')
    .action(async (id) => {
      await printReplay(client, print, await client.post(schemas.startedReplaySchema, `${pathOf(id)}/cancel`));
    });

  program
    .command('continue <replay>')
    .description('continue a bulk replay that its canary has halted')
    .action(async (id) => {
      if (id.startsWith('rpb_'))
        throw new UserError(`A batch is continued address by address: see "posthorn replays --batch ${id}".`);
      print.item(await client.post(schemas.replaySchema, `/v1/replays/${encodeURIComponent(id)}/continue`));
    });
}

function addReplayCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('replay [id]')
    .description('replay a failed delivery, or all failed deliveries of one subscription or several')
    .option('--address <subscription>', 'a subscription; repeat it for more', (id, ids: string[]) => [...ids, id], [])
    .option('--all', 'of all active subscriptions; needs --from or --failed-from')
    .addOption(fromOption('in bulk: created'))
    .addOption(toOption('in bulk: created'))
    .addOption(new Option('--type <type>', 'in bulk: with this event type').choices(EVENT_TYPES))
    .addOption(new Option('--error <error>', 'in bulk: failed for this reason').choices(FAILURE_REASONS))
    .option('--failed-from <time>', 'in bulk: failed at or after', instantOf)
    .option('--failed-to <time>', 'in bulk: failed at or before', instantOf)
    .option('--canary', 'in bulk: send 5 to an address first, and the others only when these have arrived')
    .option('--dry-run', 'in bulk: only say what it would do')
    .option('--no-wait', 'do not wait until a bulk replay has made its deliveries')
    .option('--follow', 'wait until the deliveries of a bulk replay have ended, retries included')
    .action(async (id, { address: ids, all, dryRun, ...options }) => {
      if ([id !== undefined, ids.length > 0, all].filter(Boolean).length !== 1)
        throw new UserError('Pass either one id, or --address, or --all.');
      if (all) {
        if ((options.from ?? options.failedFrom) === undefined)
          throw new UserError('--all needs --from or --failed-from, such as --failed-from 3h.');
        if (options.follow) throw new UserError('--all does not follow: see "posthorn replays".');
        await replayAtAll(client, print, options, dryRun);
        return;
      }
      if (id !== undefined && !id.startsWith('sub_')) {
        if (dryRun) throw new UserError('Only bulk replays can be rehearsed: pass the id of a subscription.');
        const { wait: _, ...inBulk } = options;
        if (Object.values(inBulk).some((value) => value !== undefined))
          throw new UserError(
            'A single delivery takes no filters, --canary or --follow: pass the id of a subscription.',
          );
        print.item(await client.post(schemas.deliverySchema, `/v1/deliveries/${encodeURIComponent(id)}/replay`));
        return;
      }
      const addresses = id === undefined ? { subscription_ids: ids } : { subscription_id: id };
      if (dryRun) {
        await rehearse(client, print, bodyOf(addresses, options));
        return;
      }
      const replay = await replayAll(client, addresses, options);
      await printReplay(client, print, replay);
      for (const one of isBatch(replay) ? replay.replays : [replay]) refuseToCallItWell(one);
    });
}

async function replayAtAll(client: Client, print: Printer, options: ReplayOptions, dryRun?: true): Promise<void> {
  const everywhere = await rehearseEverywhere(client, options);
  const { batches, count, skipped, isComplete } = everywhere;
  if (dryRun) {
    const addresses = batches.flat().length;
    const replays = isComplete ? count : `more than ${count}`;
    print.item({ addresses, count, is_complete: isComplete, skipped }, { replays, skips: skipped, addresses });
    print.say('Nothing was replayed.');
    return;
  }
  const show = (started: schemas.ReplayBatch[]) => print.list(started, batchColumns, 'No failed deliveries match.');
  await showAll(replayEverywhere(client, everywhere, options), show);
  if (batches.length > 0)
    print.say('They go on by themselves: "posthorn replays" shows how far, "posthorn cancel <id>" cancels one.');
}

/** Prints a bulk replay; for people, a batch with one line for each of its replays. */
async function printReplay(client: Client, print: Printer, replay: schemas.StartedReplay): Promise<void> {
  if (!isBatch(replay)) {
    print.item(replay);
    return;
  }
  const { address } = await addressColumns(client, print.isJson() ? [] : replay.replays);
  const replays = replay.replays.map((one) => {
    const { id, status, replayed, total, outcome } = one;
    return { id, address: address(one), status, replayed: `${replayed}/${total}`, ...outcome };
  });
  print.item(replay, { ...replay, replays });
}

async function rehearse(client: Client, print: Printer, body: object): Promise<void> {
  const rehearsal = await client.post(schemas.rehearsalSchema, '/v1/replays/rehearse', body);
  const summary = ({ count, is_complete, canaries, skipped, expected_s }: Omit<schemas.Rehearsal, 'addresses'>) => ({
    replays: is_complete ? count : `more than ${count}`,
    skips: skipped,
    'sends first': canaries,
    takes: expected_s === null ? 'unknown' : `about ${expected_s} s`,
  });
  const addresses = rehearsal.addresses.map((one) => ({
    address: one.url,
    ...summary(one),
    warnings: one.warnings.map(({ message }) => message).join(' '),
  }));
  print.item(rehearsal, { ...summary(rehearsal), addresses });
  print.say('Nothing was replayed.');
}

/** Throws `UserError` if a bulk replay has stopped before its end, so that the exit code says it. */
function refuseToCallItWell({ id, status }: schemas.Replay): void {
  if (status === 'cancelled')
    throw new UserError(`The replay was cancelled: see "posthorn deliveries --replay ${id}".`);
  if (status === 'failed') throw new UserError('The subscription was deleted during the replay.');
  if (status === 'halted')
    throw new UserError(
      `An attempt of the canary failed: see "posthorn deliveries --replay ${id}", then "posthorn continue" or "posthorn cancel".`,
    );
}
