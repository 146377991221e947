/** The commands for subscriptions, each one or two calls of the operator API. */
import { createInterface } from 'node:readline/promises';
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { SUBSCRIPTION_STATUSES } from '@posthorn/core';
import {
  deliverySchema,
  type Subscription,
  subscriptionSchema,
  subscriptionWithSecretSchema,
} from '@posthorn/operator-api';
import { environmentOption, limitOption, subscriptionEnvironmentOption } from './options.ts';
import type { Tools } from './program.ts';
import { awaitFirstAttempt } from './replay.ts';
import { UserError } from './user-error.ts';

/** Longer than the time limit of an attempt. */
const ATTEMPT_WAIT_MS = 12_000;

const columns = {
  id: (item: Subscription) => item.id,
  status: (item: Subscription) => (item.status_reason ? `${item.status} (${item.status_reason})` : item.status),
  environment: (item: Subscription) => item.environment,
  failures: (item: Subscription) => item.consecutive_failures,
  held: (item: Subscription) => item.held_deliveries,
  url: (item: Subscription) => item.url,
};

const pathOf = (id: string, action = '') => `/v1/subscriptions/${encodeURIComponent(id)}${action}`;

export function addSubscriptionCommands(program: CommandUnknownOpts, tools: () => Tools): void {
  addList(program, tools);
  addCreate(program, tools);
  addUpdate(program, tools);
  addDelete(program, tools);
  addStatusChanges(program, tools);
  addRotate(program, tools);
  addTest(program, tools);
}

function addList(program: CommandUnknownOpts, tools: () => Tools): void {
  program
    .command('list')
    .description('list subscriptions')
    .addOption(new Option('--status <status>').choices(SUBSCRIPTION_STATUSES))
    .addOption(subscriptionEnvironmentOption())
    .addOption(limitOption())
    .action(async ({ limit, ...query }) => {
      const { client, print } = tools();
      const items = await client.list(subscriptionSchema, '/v1/subscriptions', query, limit);
      print.list(items, columns, 'No matching subscriptions. To create one: posthorn create <url>');
    });
}

function addCreate(program: CommandUnknownOpts, tools: () => Tools): void {
  program
    .command('create <url>')
    .description('create a subscription and print its secret, once')
    .option('--types <types>', 'event types separated by commas, or all', 'all')
    .addOption(subscriptionEnvironmentOption().default('both'))
    .option('--description <text>')
    .action(async (url, { types, environment, description }) => {
      const { client, print } = tools();
      const body = { url, event_types: eventTypes(types), environment, description };
      const created = await client.post(subscriptionWithSecretSchema, '/v1/subscriptions', body);
      print.one(created);
      print.say(`\nKeep the secret: it is not shown again. Next: posthorn validate ${created.id}`);
    });
}

function addUpdate(program: CommandUnknownOpts, tools: () => Tools): void {
  program
    .command('update <subscription>')
    .description('change fields; a new url must be validated again')
    .option('--url <url>')
    .option('--types <types>', 'event types separated by commas, or all')
    .addOption(subscriptionEnvironmentOption())
    .option('--description <text>')
    .action(async (id, { types, ...fields }) => {
      const { client, print } = tools();
      const patch = { ...fields, event_types: types && eventTypes(types) };
      print.one(await client.patch(subscriptionSchema, pathOf(id), patch));
    });
}

function addDelete(program: CommandUnknownOpts, tools: () => Tools): void {
  program
    .command('delete <subscription>')
    .description('delete a subscription; its unfinished deliveries end as failed')
    .option('--yes', 'do not ask for confirmation')
    .action(async (id, { yes }) => {
      const { client, print } = tools();
      const { url } = await client.get(subscriptionSchema, pathOf(id));
      if (!yes && !(await confirm(`Delete ${id} (${url})?`))) throw new UserError('Nothing was deleted.');
      await client.delete(pathOf(id));
      print.say(`Deleted ${id}.`);
    });
}

function addStatusChanges(program: CommandUnknownOpts, tools: () => Tools): void {
  for (const [name, description] of [
    ['validate', 'validate the address'],
    ['pause', 'pause the address: its deliveries are held'],
    ['resume', 'resume the address: its held deliveries are sent'],
  ] as const) {
    program
      .command(`${name} <subscription>`)
      .description(description)
      .action(async (id) => {
        const { client, print } = tools();
        print.list([await client.post(subscriptionSchema, pathOf(id, `/${name}`))], columns, '');
      });
  }
}

function addRotate(program: CommandUnknownOpts, tools: () => Tools): void {
  program
    .command('rotate <subscription>')
    .description('replace the secret and print the new one, once')
    .option('--overlap <duration>', 'how long both secrets sign', '24h')
    .action(async (id, { overlap }) => {
      const { client, print } = tools();
      const rotated = await client.post(subscriptionWithSecretSchema, pathOf(id, '/rotate-secret'), { overlap });
      print.one({ id, secret: rotated.secret, previous_secret_until: rotated.previous_secret_until });
    });
}

function addTest(program: CommandUnknownOpts, tools: () => Tools): void {
  program
    .command('test <subscription>')
    .description('send a test delivery and print its result')
    .addOption(environmentOption())
    .option('--no-wait', 'do not wait for the first attempt')
    .action(async (id, { environment, wait }) => {
      const { client, print } = tools();
      const delivery = await client.post(deliverySchema, pathOf(id, '/test'), { environment });
      print.one(wait ? await awaitFirstAttempt(client, delivery.id, ATTEMPT_WAIT_MS) : delivery);
    });
}

function eventTypes(text: string): 'all' | string[] {
  return text === 'all' ? 'all' : text.split(',').map((type) => type.trim());
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UserError('Not an interactive terminal; pass --yes.');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const reply = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(reply.trim());
}
