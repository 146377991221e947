/** The commands for subscriptions, each one or two calls of the operator API. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { chunksOf, HEALTH_STATES, SUBSCRIPTION_SORTS, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { confirm } from './confirm.ts';
import { awaitFirstAttempt } from './follow-work.ts';
import { customerOf } from './names.ts';
import { environmentOption, limitOption, subscriptionEnvironmentOption, typesOption } from './options.ts';
import { pages, showAll } from './pages.ts';
import type { Printer } from './print.ts';
import { UserError } from './user-error.ts';

const columns = {
  id: (item: schemas.Subscription) => item.id,
  status: ({ status, status_reason: reason, resuming }: schemas.Subscription) =>
    resuming ? `${status} (resuming)` : reason ? `${status} (${reason})` : status,
  environment: (item: schemas.Subscription) => item.environment,
  health: ({ health: { state, error } }: schemas.Subscription) =>
    state === 'failing' && error ? `${state} (${error.label})` : state,
  failures: (item: schemas.Subscription) => item.consecutive_failures,
  held: (item: schemas.Subscription) => item.held_deliveries,
  customer: (item: schemas.Subscription) => customerOf(item),
  url: (item: schemas.Subscription) => item.url,
};

const resumeColumns = {
  id: (item: schemas.ResumeResult) => item.subscription_id,
  result: (item: schemas.ResumeResult) => item.result,
  detail: (item: schemas.ResumeResult) => item.detail ?? '',
  url: (item: schemas.ResumeResult) => item.url ?? '',
};

/** What the validation found, as words of the API. */
function validationText({ last_validation: validation }: schemas.Subscription): string {
  if (validation === null) return 'Not validated.';
  const { outcome, status_code: status, error, connection } = validation;
  const why = status === null ? [error, connection?.error_code].filter(Boolean).join(' ') : `status ${status}`;
  return `The address is ${outcome}${why && `: ${why}`}.`;
}

/** Instead of an empty list. */
function noneText(query: { health?: string | undefined }): string {
  if (query.health === 'failing') return 'No matching subscription is failing.';
  if (Object.values(query).some((value) => value !== undefined)) return 'No matching subscriptions.';
  return 'No subscriptions yet. To create one: posthorn create <url>';
}

const pathOf = (id: string, action = '') => `/v1/subscriptions/${encodeURIComponent(id)}${action}`;

export function addSubscriptionCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  addRecordCommands(program, client, print);
  addActionCommands(program, client, print);
}

function addRecordCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('list')
    .alias('subscriptions')
    .description(
      'list subscriptions; with words, those whose address or description contains each of them, or whose id begins with it',
    )
    .argument('[words...]')
    .addOption(new Option('--sort <order>').choices(SUBSCRIPTION_SORTS))
    .addOption(new Option('--status <status>').choices(SUBSCRIPTION_STATUSES))
    .addOption(new Option('--health <state>', 'from its attempts').choices(HEALTH_STATES))
    .addOption(subscriptionEnvironmentOption())
    .addOption(limitOption())
    .action(async (words, { limit, sort, status, health, environment }) => {
      const filter = { q: words.length > 0 ? words.join(' ') : undefined, status, health, environment };
      const query = { ...filter, sort } satisfies schemas.FiltersOf<typeof schemas.subscriptionsQuerySchema>;
      const items = await client.list(schemas.subscriptionSchema, '/v1/subscriptions', query, limit);
      print.list(items, columns, noneText(filter), limit);
    });

  program
    .command('create <url>')
    .description('create a subscription and print its secret, once')
    .addOption(typesOption().default('all' as const))
    .addOption(subscriptionEnvironmentOption().default('both'))
    .option('--description <text>')
    .action(async (url, { types, environment, description }) => {
      const body = { url, event_types: types, environment, description };
      const created = await client.post(schemas.subscriptionWithSecretSchema, '/v1/subscriptions', body);
      print.item(created);
      print.say(`\nKeep the secret: it is not shown again. Next: posthorn validate ${created.id}`);
    });

  program
    .command('update <subscription>')
    .description('change fields; a new url must be validated again')
    .option('--url <url>')
    .addOption(typesOption())
    .addOption(subscriptionEnvironmentOption())
    .option('--description <text>')
    .action(async (id, { types, ...fields }) => {
      const updated = await client.patch(schemas.subscriptionSchema, pathOf(id), { ...fields, event_types: types });
      print.item(updated);
      if (updated.status === 'awaiting_validation')
        print.say(`\nNothing is sent to it until it is validated. Next: posthorn validate ${id}`);
    });

  program
    .command('delete <subscription>')
    .description('delete a subscription; its unfinished deliveries end as failed')
    .option('--yes', 'do not ask for confirmation')
    .action(async (id, { yes }) => {
      const { url } = await client.get(schemas.subscriptionSchema, pathOf(id));
      if (!yes && !(await confirm(`Delete ${id} (${url})?`))) throw new UserError('Nothing was deleted.');
      await client.delete(pathOf(id));
      print.say(`Deleted ${id}.`);
    });
}

function addActionCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('validate <subscription>')
    .description('validate the address')
    .action(async (id) => {
      const subscription = await client.post(schemas.subscriptionSchema, pathOf(id, '/validate'));
      print.list([subscription], columns, '');
      print.say(validationText(subscription));
    });

  program
    .command('pause <subscriptions...>')
    .description('pause addresses: their deliveries are held')
    .action(async (ids) => {
      const { paused, refused } = await pauseNamed(client, ids);
      if (paused.length > 0) print.list(paused, columns, '');
      if (refused.length > 0) throw new UserError(refused.join('\n'));
    });

  program
    .command('resume [subscriptions...]')
    .description('resume addresses: one held delivery of each goes first, the others follow if it succeeds')
    .addOption(new Option('--reason <reason>', 'all that are paused for this reason').choices(schemas.PAUSE_REASONS))
    .addOption(subscriptionEnvironmentOption())
    .option(
      '--search <words>',
      'of those, the ones whose address or description contains each word, or whose id begins with it',
    )
    .action(async (ids, { reason, environment, search }) => {
      const [only] = ids;
      if ((only === undefined) === (reason === undefined))
        throw new UserError('Name the subscriptions to resume, or a --reason for which they are paused.');
      if (only !== undefined && (environment ?? search) !== undefined)
        throw new UserError('--environment and --search need --reason.');
      // For example from a script's variable that is not set: it would match all.
      if (search?.trim() === '') throw new UserError('--search is empty.');
      if (only !== undefined && ids.length === 1) {
        print.list([await client.post(schemas.subscriptionSchema, pathOf(only, '/resume'))], columns, '');
        return;
      }
      const filter = { status_reason: reason, environment, q: search };
      const parts = only === undefined ? resumeMatching(client, filter) : resumeNamed(client, ids);
      await showResumed(parts, print);
    });

  program
    .command('rotate <subscription>')
    .description('replace the secret and print the new one, once')
    .option('--overlap <duration>', 'how long both secrets sign', '24h')
    .option('--yes', 'also if the secret before the current one still signs: it ends at once')
    .action(async (id, { overlap, yes }) => {
      const { previous_secret_until: until } = await client.get(schemas.subscriptionSchema, pathOf(id));
      const question = `The secret before the current one signs until ${until}, and would end now. Rotate again?`;
      if (until !== null && !yes && !(await confirm(question))) throw new UserError('Nothing was rotated.');
      const rotated = await client.post(schemas.subscriptionWithSecretSchema, pathOf(id, '/rotate-secret'), {
        overlap,
      });
      print.item({ id, secret: rotated.secret, previous_secret_until: rotated.previous_secret_until });
    });

  program
    .command('test <subscription>')
    .description('send a test delivery and print its result')
    .addOption(environmentOption())
    .option('--no-wait', 'do not wait for the first attempt')
    .action(async (id, { environment, wait }) => {
      const delivery = await client.post(schemas.deliverySchema, pathOf(id, '/test'), { environment });
      print.item(wait ? await awaitFirstAttempt(client, delivery.id) : delivery);
    });
}

/** Pauses the named addresses, one call for each. Returns also a line for each refusal, and one for those not tried. */
async function pauseNamed(client: Client, ids: readonly string[]) {
  const paused: schemas.Subscription[] = [];
  const refused: string[] = [];
  for (const [i, id] of ids.entries()) {
    try {
      paused.push(await client.post(schemas.subscriptionSchema, pathOf(id, '/pause')));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      refused.push(ids.length === 1 ? error.message : `${id}: ${error.message}`);
      // The others are paused all the same; but without a console, or if it refuses every call, none can be.
      if ([404, 409].includes(error.status ?? 0)) continue;
      const others = ids.slice(i + 1);
      if (others.length > 0) refused.push(`Not tried: ${others.join(' ')}`);
      break;
    }
  }
  return { paused, refused };
}

const resumeMany = async (client: Client, body: object) =>
  await client.post(schemas.bulkResumeResultSchema, '/v1/subscriptions/resume', body);

/** Resumes the addresses that are paused and match, a call for each page of the paused ones. */
function resumeMatching(client: Client, filter: object): AsyncGenerator<schemas.ResumeResult[]> {
  return pages((cursor) => resumeMany(client, { ...filter, cursor }));
}

/** Resumes the named addresses, as many in a call as it takes. */
async function* resumeNamed(client: Client, ids: readonly string[]): AsyncGenerator<schemas.ResumeResult[]> {
  for (const some of chunksOf(ids, schemas.MAX_RESUMED))
    yield (await resumeMany(client, { subscription_ids: some })).data;
}

/** Prints what came of a resume. Throws `UserError` if an address could not be resumed. */
async function showResumed(parts: AsyncGenerator<schemas.ResumeResult[]>, print: Printer): Promise<void> {
  const results = await showAll(parts, (all) => print.list(all, resumeColumns, 'No matching subscription is paused.'));
  const resumed = results.filter(({ result }) => result === 'resumed').length;
  if (resumed > 0) {
    const trials =
      'Where the first held delivery fails, the address is paused again: see posthorn list --status paused.';
    print.say(`Resumed ${resumed}. ${trials}`);
  }
  const refused = results.filter(({ result }) => result === 'refused' || result === 'not_found').length;
  if (refused > 0) throw new UserError(`${refused} of ${results.length} could not be resumed.`);
}
