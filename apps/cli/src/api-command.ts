/** The command `api`: any call of the operator API, for those that have no command of their own. */
import { Argument, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { z } from 'zod';
import type { Client } from './client.ts';
import { jsonText } from './print.ts';
import { readText } from './read-text.ts';
import { UserError } from './user-error.ts';

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const;

export function addApiCommand(program: CommandUnknownOpts, client: Client): void {
  program
    .command('api')
    .description(
      'make any call of the operator API and print the JSON that it returns, for example: api GET /v1/overview',
    )
    .addArgument(new Argument('<method>').choices(METHODS))
    .argument('<path>', 'with its query, such as /v1/deliveries?status=failed; the console describes all at /docs')
    .option('--body <json>', 'JSON; @file reads a file, - reads standard input')
    .action(async (method, path, { body }) => {
      if (!path.startsWith('/v1/')) throw new UserError(`The path ${path} does not begin with /v1/.`);
      if (method === 'GET' && body !== undefined) throw new UserError('A GET has no body. Put filters into the path.');
      const result = await client.call(
        z.unknown(),
        method,
        path,
        body === undefined ? undefined : await readJson(body),
      );
      if (result !== undefined) process.stdout.write(`${jsonText(result)}\n`);
    });
}

/** Resolves with the value of JSON that is given, in a file, or on standard input. Throws `UserError`. */
async function readJson(given: string): Promise<unknown> {
  try {
    const file = given === '-' ? given : given.startsWith('@') ? given.slice(1) : undefined;
    const text = file === undefined ? given : (await readText(file)).replace(/^\ufeff/, '');
    return JSON.parse(text);
  } catch (cause) {
    throw new UserError(`--body: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
