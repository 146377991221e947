/** The command line: its global options and its commands. */
import { Command } from '@commander-js/extra-typings';
import type { Client } from './client.ts';
import { addDeliveryCommands } from './delivery-commands.ts';
import { addInsightCommands } from './insight-commands.ts';
import type { Printer } from './print.ts';
import { addSubscriptionCommands } from './subscription-commands.ts';

/** What a command works with. */
export interface Tools {
  client: Client;
  print: Printer;
}

/** Returns the program. It calls `connect` and `createPrinter` when a command runs: only then are the global options known. */
export function createProgram(connect: () => Client, createPrinter: (options: { json: boolean }) => Printer) {
  const program = new Command('posthorn')
    .description('Operates Posthorn. Set POSTHORN_URL and POSTHORN_TOKEN to a console and an operator token.')
    .option('--json', 'print JSON, for programs', false)
    .showHelpAfterError('Try posthorn --help.');
  const tools = (): Tools => ({ client: connect(), print: createPrinter(program.opts()) });
  addSubscriptionCommands(program, tools);
  addDeliveryCommands(program, tools);
  addInsightCommands(program, tools);
  return program;
}
