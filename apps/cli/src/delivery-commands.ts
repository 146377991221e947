/** The commands for deliveries, and `show`. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { DELIVERY_STATUSES, FAILURE_REASONS } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { addressColumns, namesOf } from './names.ts';
import { environmentOption, fromOption, limitOption, toOption, typeOption } from './options.ts';
import { pages, showAll } from './pages.ts';
import type { Printer } from './print.ts';
import { UserError } from './user-error.ts';

const columns = {
  id: (item: schemas.Delivery) => item.id,
  created: (item: schemas.Delivery) => item.created_at,
  type: (item: schemas.Delivery) => item.event_type,
  status: ({ status, failure_reason: reason, erased }: schemas.Delivery) => {
    const notes = [reason, erased && reason !== 'erased' && 'erased'].filter(Boolean);
    return notes.length > 0 ? `${status} (${notes.join(', ')})` : status;
  },
  attempts: (item: schemas.Delivery) => `${item.attempt_count}/${item.max_attempts}`,
  event: (item: schemas.Delivery) => item.event_id,
};

/** The list and the schema of each kind of id. Any other id is that of an event. */
const KINDS = new Map([
  ['sub_', { list: 'subscriptions', schema: schemas.subscriptionSchema }],
  ['dlv_', { list: 'deliveries', schema: schemas.deliveryWithAttemptsSchema }],
  ['rpl_', { list: 'replays', schema: schemas.replaySchema }],
  ['ers_', { list: 'erasures', schema: schemas.erasureSchema }],
  ['rpb_', { list: 'replay-batches', schema: schemas.replayBatchSchema }],
]);
const EVENTS = { list: 'events', schema: schemas.eventSchema };

interface OfSubscription {
  id: string;
  subscription_id?: string;
  /** Those of an event. */
  deliveries?: OfSubscription[];
}

/** The same item, with the address after the id of each subscription. */
async function withAddresses(client: Client, item: OfSubscription): Promise<object> {
  const ids = [item, ...(item.deliveries ?? [])].flatMap((of) => of.subscription_id ?? []);
  const names = await namesOf(client, ids);
  const named = (of: OfSubscription): object => {
    const fields = Object.entries(of).flatMap(([name, value]) => {
      if (name === 'subscription_id') return Object.entries({ [name]: value, address: names.get(value)?.url });
      return [[name, name === 'deliveries' ? value.map(named) : value]];
    });
    return Object.fromEntries(fields);
  };
  return named(item);
}

export function addDeliveryCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('show <id>')
    .description('show a subscription, delivery, bulk replay, batch, erasure or event')
    .action(async (id) => {
      const { list, schema } = KINDS.get(id.slice(0, 4)) ?? EVENTS;
      const found = await client.get(schema, `/v1/${list}/${encodeURIComponent(id)}`);
      print.item(found, print.isJson() ? found : await withAddresses(client, found));
    });

  program
    .command('deliveries')
    .description('list deliveries, newest first')
    .option('--subscription <id>')
    .option('--event <id>')
    .addOption(environmentOption())
    .addOption(typeOption())
    .option('--replay <id>', 'made by this bulk replay')
    .addOption(new Option('--status <status>').choices(DELIVERY_STATUSES))
    .addOption(new Option('--error <error>', 'failed for this reason').choices(FAILURE_REASONS))
    .addOption(fromOption('created'))
    .addOption(toOption('created'))
    .addOption(limitOption())
    .action(async ({ subscription, event, environment, type, replay, status, error, from, to, limit }) => {
      const ids = { subscription_id: subscription, event_id: event, replay_id: replay };
      const query = { ...ids, environment, event_type: type, status, error, from, to } satisfies schemas.FiltersOf<
        typeof schemas.deliveriesQuerySchema
      >;
      const deliveries = await client.list(schemas.deliverySchema, '/v1/deliveries', query, limit);
      const ofAddress = await addressColumns(client, print.isJson() ? [] : deliveries);
      print.list(deliveries, { ...columns, ...ofAddress }, 'No matching deliveries.', limit);
    });

  program
    .command('try-now [delivery]')
    .description('make the next attempts of deliveries that wait for a retry now; they count as the next attempts')
    .option('--all', 'of all deliveries that wait, or of those that match the options below')
    .option('--subscription <id>')
    .option('--event <id>')
    .addOption(environmentOption())
    .addOption(typeOption())
    .option('--replay <id>', 'made by this bulk replay')
    .addOption(fromOption('created'))
    .addOption(toOption('created'))
    .action(async (id, { all, subscription, event, environment, type, replay, from, to }) => {
      if ((id === undefined) === (all === undefined)) throw new UserError('Name either a delivery, or --all.');
      const ids = { subscription_id: subscription, event_id: event, replay_id: replay };
      const wanted = { ...ids, environment, event_type: type, from, to } satisfies schemas.FiltersOf<
        typeof schemas.tryNowSchema
      >;
      if (id !== undefined) {
        if (Object.values(wanted).some((value) => value !== undefined)) throw new UserError('Filters need --all.');
        print.item(await client.post(schemas.deliverySchema, `/v1/deliveries/${encodeURIComponent(id)}/try-now`));
        return;
      }
      const some = (cursor?: string) =>
        client.post(schemas.triedNowSchema, '/v1/deliveries/try-now', { ...wanted, cursor });
      await showAll(pages(some), ({ length }) => print.item({ tried_now: length }, { 'tried now': length }));
    });
}
