/** The command line for operators: `npm run posthorn -- …`, `npx posthorn …`. */
import { styleText } from 'node:util';
import { Command } from '@commander-js/extra-typings';
import { useNoProxyForLoopback } from '@posthorn/core';
import { addApiCommand } from './api-command.ts';
import { addApplyCommand } from './apply-command.ts';
import { createClient } from './client.ts';
import { addCompletionCommand } from './completion-command.ts';
import { addDeliveryCommands } from './delivery-commands.ts';
import { addErasureCommands } from './erasure-commands.ts';
import { addInsightCommands } from './insight-commands.ts';
import { addListenCommand } from './listen-command.ts';
import { createPrinter, harmless } from './print.ts';
import { addReplayCommands } from './replay-commands.ts';
import { addRequestCommand } from './request-command.ts';
import { addSignatureCommands } from './signature-commands.ts';
import { addSubscriptionCommands } from './subscription-commands.ts';
import { addTailCommand } from './tail-command.ts';
import { addTimelineCommand } from './timeline-command.ts';
import { UserError } from './user-error.ts';
import { readVersion } from './version.ts';
import { addWhyCommand } from './why-command.ts';

// The running npm start, and the receiver of `listen`.
useNoProxyForLoopback(process.env);
const program = new Command('posthorn')
  .description(
    'Operates Posthorn. Set POSTHORN_URL and POSTHORN_TOKEN to a console and an operator token. Without them it calls the running npm start.',
  )
  .version(readVersion(), '-V, --version', 'print the version')
  .option('--json', 'print JSON, for programs', false)
  .showHelpAfterError('Try posthorn --help.');
const client = createClient(process.env);
const print = createPrinter(() => program.opts().json);
addSubscriptionCommands(program, client, print);
addDeliveryCommands(program, client, print);
addReplayCommands(program, client, print);
addInsightCommands(program, client, print);
addTimelineCommand(program, client, print);
addErasureCommands(program, client, print);
addWhyCommand(program, client, print);
addSignatureCommands(program, client, print);
addRequestCommand(program, client, print);
addApplyCommand(program, client, print);
addApiCommand(program, client);
addTailCommand(program, client, print);
addListenCommand(program, client, print);
addCompletionCommand(program);
for (const command of program.commands) command.showHelpAfterError(`Try posthorn ${command.name()} --help.`);

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // Whoever read the output has enough of it, as in `posthorn deliveries | head`.
  if (code === 'EPIPE') process.exit();
  process.stderr.write(`Cannot write the output: ${message}\n`);
  process.exit(1);
});
try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`${styleText('red', harmless(error.message), { stream: process.stderr })}\n`);
  process.exitCode = 1;
}
