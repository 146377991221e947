/** The command `request`: the request of an attempt, to read or to send by hand. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { type DeliveryRequest, requestSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { HARMFUL, type Printer } from './print.ts';

export function addRequestCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('request <delivery>')
    .description('show the request of a delivery: headers, signature and body')
    .option('--attempt <number>', 'as this attempt sent it, not as it would be sent now')
    .option('--curl', 'print a curl command that sends it')
    .action(async (id, { attempt, curl }) => {
      const path = `/v1/deliveries/${encodeURIComponent(id)}/request`;
      const request = await client.get(requestSchema, path, { attempt });
      if (curl) process.stdout.write(`${curlOf(request)}\n`);
      else print.item(request, { [request.method]: request.url, ...request.headers, body: request.body });
    });
}

/**
 * Returns a command for bash or zsh that sends exactly this request: with `-g`, since curl would expand `[1-9]` in the
 * URL.
 */
function curlOf({ url, headers, body }: DeliveryRequest): string {
  const options = Object.entries(headers).map(([name, value]) => `  -H ${shellQuoted(`${name}: ${value}`)}`);
  return [`curl -g -i -X POST ${shellQuoted(url)}`, ...options, `  --data-raw ${shellQuoted(body)}`].join(' \\\n');
}

/** Returns a word for a shell. Harmful characters are spelled out, since a terminal shows the command. */
function shellQuoted(word: string): string {
  if (word.search(HARMFUL) === -1) return `'${word.replaceAll("'", "'\\''")}'`;
  return `$'${word.replaceAll(/['\\]/g, '\\$&').replaceAll(HARMFUL, bytesOf)}'`;
}

/** A character as the bytes of UTF-8, such as `\xc2\x85`: what shells make of `\u0085` depends on the locale. */
function bytesOf(character: string): string {
  return Buffer.from(character).toString('hex').replaceAll(/../g, '\\x$&');
}
