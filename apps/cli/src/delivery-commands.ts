/** The commands for deliveries and their replay, and `show`. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { DELIVERY_STATUSES } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { limitOption } from './options.ts';
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
    .addOption(new Option('--status <status>').choices(DELIVERY_STATUSES))
    .option('--from <instant>', 'created at or after, ISO 8601')
    .option('--to <instant>', 'created at or before, ISO 8601')
    .addOption(limitOption())
    .action(async ({ subscription, event, limit, ...filter }) => {
      const query = { subscription_id: subscription, event_id: event, ...filter };
      print.list(
        await client.list(schemas.deliverySchema, '/v1/deliveries', query, limit),
        columns,
        'No matching deliveries.',
      );
    });

  program
    .command('replay <id>')
    .description('replay a failed delivery, or all failed deliveries of a subscription')
    .option('--from <instant>', 'of a subscription: created at or after, ISO 8601')
    .option('--to <instant>', 'of a subscription: created at or before, ISO 8601')
    .option('--no-wait', 'do not wait for a bulk replay to end')
    .action(async (id, options) => {
      if (!id.startsWith('sub_')) {
        print.item(await client.post(schemas.deliverySchema, `/v1/deliveries/${encodeURIComponent(id)}/replay`));
        return;
      }
      const replay = await replayAll(client, id, options);
      print.item(replay);
      if (replay.status === 'failed') throw new UserError('The subscription was deleted during the replay.');
    });
}
