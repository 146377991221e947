/** The commands for deliveries and their replay, and `show`. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { DELIVERY_STATUSES, ENVIRONMENTS, EVENT_TYPES, FAILURE_REASONS } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { customerOf, namesOf } from './names.ts';
import { failedFromOption, failedToOption, fromOption, limitOption, toOption } from './options.ts';
import type { Printer } from './print.ts';
import { replayAll } from './replay.ts';
import { UserError } from './user-error.ts';

const columns = {
  id: (item: schemas.Delivery) => item.id,
  created: (item: schemas.Delivery) => item.created_at,
  type: (item: schemas.Delivery) => item.event_type,
  status: (item: schemas.Delivery) => (item.failure_reason ? `${item.status} (${item.failure_reason})` : item.status),
  attempts: (item: schemas.Delivery) => `${item.attempt_count}/${item.max_attempts}`,
  event: (item: schemas.Delivery) => item.event_id,
};

function addressColumns(names: Map<string, schemas.SubscriptionName>) {
  const nameOf = (item: { subscription_id: string }) => names.get(item.subscription_id);
  return {
    address: (item: { subscription_id: string }) => nameOf(item)?.url ?? item.subscription_id,
    customer: (item: { subscription_id: string }) => customerOf(nameOf(item) ?? { description: '' }),
  };
}

const replayColumns = {
  id: (item: schemas.Replay) => item.id,
  created: (item: schemas.Replay) => item.created_at,
  status: (item: schemas.Replay) => item.status,
  replayed: (item: schemas.Replay) => `${item.replayed}/${item.total}`,
  skipped: (item: schemas.Replay) => item.skipped,
  delivered: (item: schemas.Replay) => item.outcome.delivered,
  failed: (item: schemas.Replay) => item.outcome.failed,
  waiting: (item: schemas.Replay) => item.outcome.waiting,
  operator: (item: schemas.Replay) => item.operator,
};

/** The list and the schema of each kind of id. Any other id is that of an event. */
const KINDS = new Map([
  ['sub_', { list: 'subscriptions', schema: schemas.subscriptionSchema }],
  ['dlv_', { list: 'deliveries', schema: schemas.deliveryWithAttemptsSchema }],
  ['rpl_', { list: 'replays', schema: schemas.replaySchema }],
]);
const EVENTS = { list: 'events', schema: schemas.eventSchema };

export function addDeliveryCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('show <id>')
    .description('show a subscription, delivery, bulk replay or event')
    .action(async (id) => {
      const { list, schema } = KINDS.get(id.slice(0, 4)) ?? EVENTS;
      print.item(await client.get(schema, `/v1/${list}/${encodeURIComponent(id)}`));
    });

  program
    .command('deliveries')
    .description('list deliveries, newest first')
    .option('--subscription <id>')
    .option('--event <id>')
    .addOption(new Option('--environment <environment>').choices(ENVIRONMENTS))
    .addOption(new Option('--type <type>', 'event type').choices(EVENT_TYPES))
    .option('--replay <id>', 'made by this bulk replay')
    .addOption(new Option('--status <status>').choices(DELIVERY_STATUSES))
    .addOption(fromOption('created'))
    .addOption(toOption('created'))
    .addOption(limitOption())
    .action(async ({ subscription, event, type, replay, limit, ...filter }) => {
      const query = { subscription_id: subscription, event_id: event, event_type: type, replay_id: replay, ...filter };
      const deliveries = await client.list(schemas.deliverySchema, '/v1/deliveries', query, limit);
      const ids = print.isJson() ? [] : deliveries.map((item) => item.subscription_id);
      print.list(deliveries, { ...columns, ...addressColumns(await namesOf(client, ids)) }, 'No matching deliveries.');
    });

  program
    .command('replays')
    .description('list bulk replays, newest first')
    .option('--subscription <id>')
    .addOption(limitOption())
    .action(async ({ subscription, limit }) => {
      const query = { subscription_id: subscription };
      const replays = await client.list(schemas.replaySchema, '/v1/replays', query, limit);
      const ids = print.isJson() ? [] : replays.map((item) => item.subscription_id);
      print.list(replays, { ...replayColumns, ...addressColumns(await namesOf(client, ids)) }, 'No bulk replays.');
    });

  program
    .command('try-now <id>')
    .description('make the next attempt of a delivery that waits for a retry now; it counts as the next attempt')
    .action(async (id) => {
      print.item(await client.post(schemas.deliverySchema, `/v1/deliveries/${encodeURIComponent(id)}/try-now`));
    });

  program
    .command('replay <id>')
    .description('replay a failed delivery, or all failed deliveries of a subscription')
    .addOption(fromOption('of a subscription: created'))
    .addOption(toOption('of a subscription: created'))
    .addOption(new Option('--type <type>', 'of a subscription: with this event type').choices(EVENT_TYPES))
    .addOption(new Option('--error <error>', 'of a subscription: failed for this reason').choices(FAILURE_REASONS))
    .addOption(failedFromOption())
    .addOption(failedToOption())
    .option('--canary', 'of a subscription: send 5 first, and the others only when these have arrived')
    .option('--no-wait', 'do not wait until a bulk replay has made its deliveries')
    .option('--follow', 'wait until the deliveries of a bulk replay have ended, retries included')
    .action(async (id, options) => {
      if (!id.startsWith('sub_')) {
        print.item(await client.post(schemas.deliverySchema, `/v1/deliveries/${encodeURIComponent(id)}/replay`));
        return;
      }
      const replay = await replayAll(client, id, options);
      print.item(replay);
      if (replay.status === 'failed') throw new UserError('The subscription was deleted during the replay.');
      if (replay.status === 'halted')
        throw new UserError(
          `An attempt of the canary failed: see "posthorn deliveries --replay ${replay.id}", then "posthorn continue" or "posthorn cancel".`,
        );
    });

  program
    .command('cancel <replay>')
    .description('cancel a bulk replay: what has had no attempt yet is not sent')
    .action(async (id) => {
      print.item(await client.post(schemas.replaySchema, `/v1/replays/${encodeURIComponent(id)}/cancel`));
    });

  program
    .command('continue <replay>')
    .description('continue a bulk replay that its canary has halted')
    .action(async (id) => {
      print.item(await client.post(schemas.replaySchema, `/v1/replays/${encodeURIComponent(id)}/continue`));
    });
}
