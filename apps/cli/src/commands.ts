/** The commands of the command line, each a call or two of the operator API. */
import { createInterface } from 'node:readline/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type Answer, type Client, UserError } from './client.ts';
import type { Printer } from './print.ts';
import { afterFirstAttempt, replayAll } from './replay.ts';

/** Longer than the limit of an attempt. */
const ATTEMPT_WAIT_MS = 12_000;

const subscriptionColumns = {
  id: (item: Answer) => item.id,
  status: (item: Answer) => (item.status_reason ? `${item.status} (${item.status_reason})` : item.status),
  environment: (item: Answer) => item.environment,
  failures: (item: Answer) => item.consecutive_failures,
  held: (item: Answer) => item.held_deliveries,
  url: (item: Answer) => item.url,
};
const deliveryColumns = {
  id: (item: Answer) => item.id,
  created: (item: Answer) => item.created_at,
  type: (item: Answer) => item.event_type,
  status: (item: Answer) => (item.failure_reason ? `${item.status} (${item.failure_reason})` : item.status),
  attempts: (item: Answer) => `${item.attempt_count}/${item.max_attempts}`,
  event: (item: Answer) => item.event_id,
};
const auditColumns = {
  at: (item: Answer) => item.at,
  operator: (item: Answer) => item.operator ?? 'posthorn',
  action: (item: Answer) => item.action,
  about: (item: Answer) => item.delivery_id ?? item.replay_id ?? item.subscription_id,
  detail: (item: Answer) => (Object.keys(item.detail).length === 0 ? null : item.detail),
};

/** The program. `connect` and `printer` are made once the global options are known. */
export function createProgram(connect: () => Client, printer: (options: { json: boolean }) => Printer): Command {
  const program = new Command('posthorn')
    .description('Operates Posthorn. POSTHORN_URL and POSTHORN_TOKEN say where and as whom.')
    .option('--json', 'print JSON, for programs', false)
    .showHelpAfterError('Try posthorn --help.');
  const tools = () => ({ client: connect(), print: printer(program.opts()) });
  const path = (id: string, action = '') => `/v1/subscriptions/${encodeURIComponent(id)}${action}`;
  const limit = () => new Option('--limit <number>', 'how many at most').default(50).argParser(wholeNumber);
  const environments = ['sandbox', 'production', 'both'];

  program
    .command('list')
    .description('list subscriptions')
    .addOption(new Option('--status <status>').choices(['awaiting_validation', 'active', 'paused', 'refused']))
    .addOption(new Option('--environment <environment>').choices(environments))
    .addOption(limit())
    .action(async ({ status, environment, limit: most }) => {
      const { client, print } = tools();
      const items = await client.list('/v1/subscriptions', { status, environment }, most);
      print.list(items, subscriptionColumns, 'There are none. Make one: posthorn create <url>');
    });

  program
    .command('show <id>')
    .description('show a subscription, delivery, bulk replay or event')
    .action(async (id: string) => {
      const { client, print } = tools();
      const kind = { sub_: 'subscriptions', dlv_: 'deliveries', rpl_: 'replays' }[id.slice(0, 4)] ?? 'events';
      print.one(await client.get(`/v1/${kind}/${encodeURIComponent(id)}`));
    });

  program
    .command('create <url>')
    .description('create a subscription; prints its secret, once')
    .option('--types <types>', 'event types separated by commas, or all', 'all')
    .addOption(new Option('--environment <environment>').choices(environments).default('both'))
    .option('--description <text>')
    .action(async (url: string, { types, environment, description }) => {
      const { client, print } = tools();
      const body = { url, event_types: eventTypes(types), environment, description };
      const created = await client.post('/v1/subscriptions', body);
      print.one(created);
      print.say(`\nKeep the secret: it is not shown again. Next: posthorn validate ${created.id}`);
    });

  program
    .command('update <subscription>')
    .description('change fields; a new url has to be validated again')
    .option('--url <url>')
    .option('--types <types>', 'event types separated by commas, or all')
    .addOption(new Option('--environment <environment>').choices(environments))
    .option('--description <text>')
    .action(async (id: string, { url, types, environment, description }) => {
      const { client, print } = tools();
      const fields = { url, event_types: types && eventTypes(types), environment, description };
      print.one(await client.patch(path(id), fields));
    });

  program
    .command('delete <subscription>')
    .description('delete a subscription; its unfinished deliveries end as failed')
    .option('--yes', 'do not ask')
    .action(async (id: string, { yes }) => {
      const { client, print } = tools();
      const { url } = await client.get(path(id));
      if (!yes && !(await agrees(`Delete ${id} (${url})?`))) throw new UserError('Nothing was deleted.');
      await client.delete(path(id));
      print.say(`${id} is gone.`);
    });

  for (const [name, description] of [
    ['validate', 'validate the address'],
    ['pause', 'pause the address: deliveries are held'],
    ['resume', 'resume the address: what was held is sent'],
  ] as const) {
    program
      .command(`${name} <subscription>`)
      .description(description)
      .action(async (id: string) => {
        const { client, print } = tools();
        print.list([await client.post(path(id, `/${name}`))], subscriptionColumns, '');
      });
  }

  program
    .command('rotate <subscription>')
    .description('give it a new secret; prints it, once')
    .option('--overlap <duration>', 'how long both secrets sign', '24h')
    .action(async (id: string, { overlap }) => {
      const { client, print } = tools();
      const { secret, previous_secret_until } = await client.post(path(id, '/rotate-secret'), { overlap });
      print.one({ id, secret, previous_secret_until });
    });

  program
    .command('test <subscription>')
    .description('send a test delivery and show what became of it')
    .addOption(new Option('--environment <environment>').choices(['sandbox', 'production']))
    .option('--no-wait', 'do not wait for the first attempt')
    .action(async (id: string, { environment, wait }) => {
      const { client, print } = tools();
      const made = await client.post(path(id, '/test'), { environment });
      print.one(wait ? await afterFirstAttempt(client, made.id, ATTEMPT_WAIT_MS) : made);
    });

  program
    .command('deliveries')
    .description('list deliveries, newest first')
    .option('--subscription <id>')
    .option('--event <id>')
    .addOption(new Option('--status <status>').choices(['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed']))
    .option('--from <instant>', 'ISO 8601')
    .option('--to <instant>', 'ISO 8601')
    .addOption(limit())
    .action(async ({ subscription, event, status, from, to, limit: most }) => {
      const { client, print } = tools();
      const query = { subscription_id: subscription, event_id: event, status, from, to };
      print.list(await client.list('/v1/deliveries', query, most), deliveryColumns, 'There are none.');
    });

  program
    .command('replay <id>')
    .description('replay a failed delivery, or all failed ones of a subscription')
    .option('--from <instant>', 'of a subscription: made at or after, ISO 8601')
    .option('--to <instant>', 'of a subscription: made at or before, ISO 8601')
    .option('--no-wait', 'do not wait for a bulk replay to end')
    .action(async (id: string, options) => {
      const { client, print } = tools();
      if (id.startsWith('sub_')) {
        const replay = await replayAll(client, id, options);
        print.one(replay);
        if (replay.status === 'failed') throw new UserError('The subscription was deleted meanwhile.');
        return;
      }
      print.one(await client.post(`/v1/deliveries/${encodeURIComponent(id)}/replay`));
    });

  program
    .command('overview')
    .description('how things are')
    .action(async () => {
      const { client, print } = tools();
      const overview = await client.get('/v1/overview');
      if (program.opts().json) print.one(overview);
      else print.one(summary(overview));
    });

  program
    .command('audit')
    .description('who did what, newest first')
    .option('--subscription <id>')
    .option('--operator <name>')
    .addOption(limit())
    .action(async ({ subscription, operator, limit: most }) => {
      const { client, print } = tools();
      const query = { subscription_id: subscription, operator };
      print.list(await client.list('/v1/audit', query, most), auditColumns, 'Nothing happened yet.');
    });

  return program;
}

function summary({ deliveries, subscriptions, queue, workers, last_hour: hour, addresses }: Answer) {
  const counts = (of: Record<string, number>) =>
    Object.entries(of)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  return {
    deliveries: counts(deliveries),
    subscriptions: counts(subscriptions),
    queue: counts(queue),
    workers: workers.length,
    'attempts, last hour': `${hour.attempts}, ${hour.success_rate === null ? '-' : `${(100 * hour.success_rate).toFixed(1)} %`} succeeded`,
    'attempt ms, p50 / p99': `${hour.attempt_ms.p50 ?? '-'} / ${hour.attempt_ms.p99 ?? '-'}`,
    'arrival ms, p50 / p99': `${hour.arrival_ms.p50 ?? '-'} / ${hour.arrival_ms.p99 ?? '-'}`,
    paused: addresses.paused.map(({ id, url }: Answer) => `${id} ${url}`),
    'most failing': addresses.most_failing.map((item: Answer) => `${item.subscription_id} ${item.failed} failed`),
    slowest: addresses.slowest.map((item: Answer) => `${item.subscription_id} ${item.mean_ms} ms`),
  };
}

function eventTypes(text: string): 'all' | string[] {
  return text === 'all' ? 'all' : text.split(',').map((type) => type.trim());
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 999999.');
  return Number(text);
}

async function agrees(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UserError('Nobody is there to be asked: add --yes.');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}
