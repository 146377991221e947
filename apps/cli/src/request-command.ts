/** The command `request`: the request of an attempt, to read or to send by hand. */
import { type CommandUnknownOpts, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { type DeliveryRequest, requestSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { escaped, type Printer } from './print.ts';

export function addRequestCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('request <delivery>')
    .description('show the request of a delivery: headers, signature and body')
    .addOption(
      new Option('--attempt <number>', 'as this attempt sent it, not as it would be sent now').argParser(attemptNumber),
    )
    .option('--curl', 'print a curl command that sends it')
    .action(async (id, { attempt, curl }) => {
      const path = `/v1/deliveries/${encodeURIComponent(id)}/request`;
      const request = await client.get(requestSchema, path, { attempt });
      if (curl) process.stdout.write(`${curlOf(request)}\n`);
      else print.item(request, { [request.method]: request.url, ...request.headers, body: request.body });
    });
}

function attemptNumber(given: string): number {
  if (!/^[1-9]\d?$/.test(given)) throw new InvalidArgumentError('Expected the number of an attempt.');
  return Number(given);
}

/** Returns a command for bash or zsh that sends exactly this request. */
function curlOf({ url, headers, body }: DeliveryRequest): string {
  const options = Object.entries(headers).map(([name, value]) => `  -H ${shellQuoted(`${name}: ${value}`)}`);
  return [`curl -i -X POST ${shellQuoted(url)}`, ...options, `  --data-raw ${shellQuoted(body)}`].join(' \\\n');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not reach a terminal
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;

/** Returns a word for a shell. Control characters are spelled out, since they would control the terminal that shows the command. */
function shellQuoted(word: string): string {
  if (!CONTROL.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const characters = [...word].map((character) => {
    if (character === "'" || character === '\\') return `\\${character}`;
    return CONTROL.test(character) ? escaped(character) : character;
  });
  return `$'${characters.join('')}'`;
}
