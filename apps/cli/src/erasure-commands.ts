/** The commands that erase payloads, and list what was erased. */
import { setTimeout as wait } from 'node:timers/promises';
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { UNSENT_CHOICES } from '@posthorn/core';
import { type Erasure, erasureSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { following, mayPass, POLL_INTERVAL_MS } from './follow-work.ts';
import { environmentOption, limitOption } from './options.ts';
import { harmless, type Printer } from './print.ts';
import { SIGNALS } from './signals.ts';
import { UserError } from './user-error.ts';

const columns = {
  id: (item: Erasure) => item.id,
  requested: (item: Erasure) => item.created_at,
  field: (item: Erasure) => item.field,
  status: (item: Erasure) => item.status,
  events: (item: Erasure) => `${item.erased.events}/${item.found.events}`,
  ended: (item: Erasure) => item.erased.ended,
  operator: (item: Erasure) => item.confirmed_by ?? item.operator,
};

interface Values {
  event?: string | undefined;
  session?: string | undefined;
  reference?: string | undefined;
  user?: string | undefined;
}

/** The value in the words of the API. The API refuses more than one. */
const bodyOf = ({ event, session, reference, user }: Values) => ({
  event_id: event,
  session_id: session,
  reference,
  user_id: user,
});

export function addErasureCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('erase')
    .description('erase the payloads of an event, a session, a reference or a user; without --yes only counts them')
    .option('--event <id>')
    .option('--session <id>')
    .option('--reference <reference>')
    .option('--user <id>')
    .addOption(environmentOption())
    .addOption(
      new Option('--unsent <choice>', 'what becomes of deliveries that have not ended')
        .choices(UNSENT_CHOICES)
        .default('end' as const),
    )
    .option('--yes', 'erase; this cannot be undone')
    .option('--no-wait', 'with --yes: do not wait until it is done')
    .action(async ({ environment, unsent, yes = false, wait: untilDone, ...values }) => {
      const wanted = bodyOf(values);
      if (Object.values(wanted).some((value) => value !== value?.trim()))
        process.stderr.write('The value begins or ends with white space, which counts.\n');
      const body = { ...wanted, environment, unsent, confirm: yes };
      const started = await client.post(erasureSchema, '/v1/erasures', body);
      if (!yes) await showCount(client, print, started);
      else
        print.item(
          untilDone ? await following(started.id, untilSettled(client, started)).then(refuseCancelled) : started,
        );
    });

  program
    .command('erasures')
    .description('list erasures, newest first; with a value, those of this value')
    .option('--event <id>')
    .option('--session <id>')
    .option('--reference <reference>')
    .option('--user <id>')
    .addOption(limitOption())
    .action(async ({ limit, ...values }) => {
      const erasures = await client.list(erasureSchema, '/v1/erasures', bodyOf(values), limit);
      print.list(erasures, columns, 'No erasures.', limit);
    });
}

/** Only the count is wanted: shows it and cancels the erasure, or it would wait an hour for a confirmation. */
async function showCount(client: Client, print: Printer, started: Erasure): Promise<void> {
  const cancel = `/v1/erasures/${started.id}/cancel`;
  const left = `Nothing was erased. ${started.id} is cancelled an hour after its count; at once by: posthorn api POST ${cancel}`;
  for (const signal of SIGNALS)
    process.once(signal, () => {
      process.stderr.write(`${left}\n`);
      process.exit(1);
    });
  const explain = (cause: unknown): never => {
    if (!(cause instanceof UserError && mayPass(cause))) throw cause;
    throw new UserError(`${cause.message}\n${left}`, { cause });
  };
  const counted = await untilSettled(client, started).catch(explain);
  if (counted.status !== 'counted') {
    // Somebody else has confirmed or cancelled it.
    print.item(refuseCancelled(counted));
    return;
  }
  const cancelled = await client.post(erasureSchema, cancel).catch((cause: unknown) => {
    print.item(counted);
    return explain(cause);
  });
  print.item(cancelled);
  print.say('Nothing was erased. Repeat the command with --yes to erase.');
}

/** Waits until an erasure needs a decision, has ended, or waits for deliveries. */
async function untilSettled(client: Client, started: Erasure): Promise<Erasure> {
  let erasure = started;
  let isTold = false;
  while (erasure.status === 'counting' || erasure.status === 'running') {
    await wait(POLL_INTERVAL_MS);
    erasure = await client.get(erasureSchema, `/v1/erasures/${erasure.id}`);
    if (erasure.unreadable && erasure.status === 'running' && !isTold) {
      process.stderr.write(`${waitsText(erasure.unreadable)}\n`);
      isTold = true;
    }
  }
  return erasure;
}

function waitsText({ events, ids }: NonNullable<Erasure['unreadable']>): string {
  const what = events === 1 ? '1 stored event' : `${events} stored events`;
  return `${what} can't be read and may have the value: ${ids.map(harmless).join(', ')}${events > ids.length ? ', …' : ''}. It ends only when each can be read, has expired or is gone. See "A record that can't be read" in docs/runbooks.md.`;
}

function refuseCancelled(erasure: Erasure): Erasure {
  if (erasure.status === 'cancelled')
    throw new UserError(`The erasure was cancelled: see "posthorn show ${erasure.id}".`);
  return erasure;
}
