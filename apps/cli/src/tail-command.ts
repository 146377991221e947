/** The command `tail`: prints attempts as they happen. */
import { styleText } from 'node:util';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { type FiltersOf, type TailedAttempt, tailedAttemptSchema, type tailQuerySchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { followEvents } from './follow-events.ts';
import { namesOf } from './names.ts';
import { environmentOption, typeOption } from './options.ts';
import { harmless, jsonText, type Printer } from './print.ts';
import { UserError } from './user-error.ts';

export function addTailCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('tail')
    .description('print attempts as they happen, until Ctrl-C')
    .option('--failed', 'only failed ones')
    .option('--address <subscription>', 'only those to the address of a subscription')
    .addOption(typeOption())
    .addOption(environmentOption())
    .action(async ({ failed, address, type, environment }) => {
      const filter = { failed: failed ? 'true' : undefined, subscription_id: address, event_type: type, environment };
      const query = filter satisfies FiltersOf<typeof tailQuerySchema>;
      const nameOf = createNames(client);
      for await (const { name, data } of followEvents(client, '/v1/tail', query)) {
        if (name !== 'attempt') continue;
        const attempt = tailedAttemptSchema.loose().parse(data);
        if (print.isJson()) process.stdout.write(`${jsonText(attempt, 0)}\n`);
        else process.stdout.write(`${lineOf(attempt, await nameOf(attempt.subscription_id))}\n`);
      }
    });
}

/**
 * Returns a function that resolves with the URL of a subscription, or with its id if it has been deleted. Asks once for
 * each; while the console is away, it resolves with the id and asks again the next time.
 */
function createNames(client: Client): (id: string) => Promise<string> {
  const urls = new Map<string, string>();
  return async (id) => {
    const known = urls.get(id);
    if (known !== undefined) return known;
    try {
      const url = (await namesOf(client, [id])).get(id)?.url ?? id;
      urls.set(id, url);
      return url;
    } catch (error) {
      if (error instanceof UserError) return id;
      throw error;
    }
  };
}

function lineOf(attempt: TailedAttempt, url: string): string {
  const result = attempt.status_code ?? attempt.error ?? '';
  const mark = attempt.outcome === 'failed' ? styleText('red', `failed ${result}`) : styleText('green', `ok ${result}`);
  const { at, duration_ms: ms, event_type: type, attempt: number, delivery_id: id } = attempt;
  return `${at}  ${mark}  ${ms} ms  ${type}  attempt ${number}  ${id}  ${harmless(url)}`;
}
