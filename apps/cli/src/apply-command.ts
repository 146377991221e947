/** The command `apply`: makes the subscriptions what a file says. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { OWN_SECRET, subscriptionIdOfKey } from '@posthorn/core';
import { type Subscription, subscriptionSchema, subscriptionWithSecretSchema } from '@posthorn/operator-api';
import { type Change, doubledEvents, planChanges } from './apply-plan.ts';
import { type Client, unreadableText } from './client.ts';
import { confirm } from './confirm.ts';
import type { Printer } from './print.ts';
import { SIGNALS } from './signals.ts';
import { readSubscriptionsFile, type Wanted } from './subscriptions-file.ts';
import { UserError } from './user-error.ts';

/** The exit code of a dry run that found differences. */
const DIFFERS = 2;
/** npm sends its child a second SIGINT for one Ctrl-C. */
const REPEAT_MS = 1_000;

interface Options {
  file: string;
  dryRun?: true | undefined;
  prune?: true | undefined;
  validate?: true | undefined;
  yes?: true | undefined;
}

export function addApplyCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('apply')
    .description('make the subscriptions what a YAML file says; a second run changes nothing')
    .requiredOption('-f, --file <path>', 'the file; - for the standard input')
    .option('--dry-run', `only show what would change; exit code ${DIFFERS} if something would`)
    .option('--prune', 'delete subscriptions with a key that the file does not have')
    .option('--validate', 'validate the addresses that are new, changed or not validated yet')
    .option('--yes', 'delete without asking for confirmation')
    .action((options: Options) => apply(client, print, options));
}

async function apply(client: Client, print: Printer, options: Options): Promise<void> {
  const wanted = await readSubscriptionsFile(options.file);
  const present = await client.list(subscriptionSchema, '/v1/subscriptions', {}, Number.MAX_SAFE_INTEGER, (ids) => {
    // It would create again, or leave, what is among them.
    throw new UserError(`Nothing was changed. ${unreadableText(ids)}`);
  });
  const changes = planChanges(wanted, present, options);
  const secrets = readSecrets(changes.flatMap((one) => (one.change === 'create' ? [one.wanted] : [])));
  for (const warning of doubledEvents(changes, wanted, present)) process.stderr.write(`${warning}\n`);
  if (options.dryRun) {
    showChanges(print, changes);
    if (changes.length > 0) process.exitCode = DIFFERS;
    return;
  }
  const deletions = changes.filter(({ change }) => change === 'delete').length;
  if (deletions > 0 && !options.yes) {
    if (!print.isJson()) showChanges(print, changes);
    if (!(await confirm(`Delete ${deletions} ${deletions === 1 ? 'subscription' : 'subscriptions'}?`)))
      throw new UserError('Nothing was changed.');
  }
  if (changes.length === 0) {
    print.list([], doneColumns, 'Nothing to change.');
    return;
  }
  const done: Done[] = [];
  const rows = print.rows(changes.map(expectedRow), doneColumns);
  let shown = 0;
  const showDone = () => {
    while (shown < done.length) rows.add(done[shown++]!);
  };
  const endList = () => {
    showDone();
    if (shown > 0) rows.end();
  };
  const soFar = () => {
    if (done.length < changes.length)
      return `${done.length} of ${changes.length} changes made; the next run makes the rest.`;
    return `Every change was made${options.validate ? '; the next run with --validate validates the rest' : ''}.`;
  };
  const isInterrupted = interruption(() => {
    endList();
    const inProgress = done.length < changes.length ? ' The change in progress may have been made.' : '';
    process.stderr.write(`Interrupted.${inProgress}\n${soFar()}\n`);
    process.exit(1);
  });
  process.stdout.prependOnceListener('error', ({ message }: Error) => {
    const next = 'Secrets that were not written are not shown again: "posthorn rotate" makes new ones.';
    process.stderr.write(`Cannot write the output: ${message}. ${soFar()}\n${next}\n`);
    process.exit(1);
  });
  try {
    for (const change of changes) {
      // An output that is closed ends the run here, before there is another secret.
      await nextTurn();
      if (isInterrupted()) throw new UserError('Interrupted.');
      await carryOut(client, change, secrets, options.validate === true, done)
        .catch((cause: unknown) => {
          if (!(cause instanceof UserError)) throw cause;
          const { key, id } = rowOf(change);
          throw new UserError(`${key ?? id}: ${cause.message}${lostSecretText(change, cause, done)}`, { cause });
        })
        // At once: a secret is not shown again, and what is killed prints nothing more.
        .finally(showDone);
    }
  } catch (error) {
    endList();
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`${error.message}\n${soFar()}`, { cause: error });
  }
  endList();
}

/**
 * Returns a function that says whether the run has to end. The change in progress is completed first, since the secret
 * of a new subscription is not shown again. A second signal calls `end`, which ends the run at once.
 */
function interruption(end: () => never): () => boolean {
  let interruptedAtMs: number | undefined;
  const interrupt = () => {
    if (interruptedAtMs !== undefined && performance.now() - interruptedAtMs > REPEAT_MS) end();
    if (interruptedAtMs === undefined) process.stderr.write('Ends after the change that is being made ...\n');
    interruptedAtMs ??= performance.now();
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  return () => interruptedAtMs !== undefined;
}

/** What to do about a generated secret if it is unknown whether its subscription was created. */
function lostSecretText(change: Change, { mayBeDone }: UserError, done: Done[]): string {
  if (change.change !== 'create' || change.wanted.secret_env !== undefined || !mayBeDone) return '';
  const { key, url } = change.wanted;
  // Its validation has failed, and its secret is shown.
  if (done.at(-1)?.key === key) return '';
  return `\nIf ${key} was created all the same, its secret was not shown: see "posthorn list ${url}", then "posthorn rotate".`;
}

interface Row {
  change: Change['change'];
  key: string | null;
  id: string | null;
  url: string;
  fields: string[];
}
interface Done extends Row {
  status: string | null;
  secret: string | null;
}
const columns = {
  change: (row: Row) => row.change,
  key: (row: Row) => row.key,
  id: (row: Row) => row.id,
  url: (row: Row) => row.url,
  fields: (row: Row) => row.fields,
};
const doneColumns = { ...columns, status: (row: Done) => row.status, secret: (row: Done) => row.secret };
function showChanges(print: Printer, changes: Change[]): void {
  print.list(changes.map(rowOf), columns, 'Nothing to change.');
}

function rowOf(change: Change): Row {
  if (change.change === 'create') {
    const { key = null, url } = change.wanted;
    return { change: 'create', key, id: null, url, fields: [] };
  }
  const { key, id, url } = change.present;
  const fields = change.change === 'update' ? Object.entries(change.fields).map(describe) : [];
  return { change: change.change, key, id, url, fields };
}

/** The row of a change that is not made yet, as wide as it will be: without a secret, which is in the last column. */
function expectedRow(change: Change): Done {
  const row = rowOf(change);
  const id = row.id ?? subscriptionIdOfKey(row.key ?? '');
  return { ...row, id, status: 'awaiting_validation', secret: null };
}

function describe([field, { from, to }]: [string, { from: unknown; to: unknown }]): string {
  return `${field}: ${JSON.stringify(from)} → ${JSON.stringify(to)}`;
}

/**
 * Makes a change. Adds it to `done` before a validation, which may fail: the secret of a new subscription must be
 * shown.
 */
async function carryOut(
  client: Client,
  change: Change,
  secrets: Map<Wanted, string>,
  validate: boolean,
  done: Done[],
): Promise<void> {
  const row = rowOf(change);
  const at = (id: string, action = '') => `/v1/subscriptions/${id}${action}`;
  const finish = async ({ id, url, status, validated }: Subscription, secret: string | null) => {
    const made = { ...row, id, url, status, secret };
    done.push(made);
    if (validate && !validated) made.status = (await client.post(subscriptionSchema, at(id, '/validate'))).status;
  };
  switch (change.change) {
    case 'create': {
      const { secret_env: secretName, id: _, ...fields } = change.wanted;
      const secret = secrets.get(change.wanted);
      const created = await client.post(subscriptionWithSecretSchema, '/v1/subscriptions', { ...fields, secret });
      return await finish(created, secretName === undefined ? created.secret : null);
    }
    case 'update': {
      const fields = Object.fromEntries(Object.entries(change.fields).map(([field, { to }]) => [field, to]));
      const updated = await client.patch(subscriptionSchema, at(change.present.id), fields);
      return await finish(updated, null);
    }
    case 'validate': {
      const { status } = await client.post(subscriptionSchema, at(change.present.id, '/validate'));
      return void done.push({ ...row, status, secret: null });
    }
    case 'delete':
      // Another run may have deleted it meanwhile.
      await client.delete(at(change.present.id)).catch((error: unknown) => {
        if (!(error instanceof UserError && error.status === 404)) throw error;
      });
      return void done.push({ ...row, status: null, secret: null });
    default:
      return change satisfies never;
  }
}

/** The secrets that these new subscriptions get, from the environment; read before anything is changed. */
function readSecrets(wanted: readonly Wanted[]): Map<Wanted, string> {
  const secrets = new Map<Wanted, string>();
  for (const entry of wanted) {
    if (entry.secret_env === undefined) continue;
    // Not what every object has, such as `constructor`.
    const secret = Object.hasOwn(process.env, entry.secret_env) ? process.env[entry.secret_env] : undefined;
    if (!secret)
      throw new UserError(`${entry.secret_env} is not set; ${entry.key ?? entry.id} names it as its secret_env.`);
    if (!OWN_SECRET.test(secret))
      throw new UserError(
        `${entry.secret_env}, the secret_env of ${entry.key ?? entry.id}, must be 16 to 256 printable ASCII characters without spaces or line breaks.`,
      );
    secrets.set(entry, secret);
  }
  return secrets;
}
