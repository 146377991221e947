/** The command line for operators: `npm run posthorn -- …`, `npx posthorn …`. */
import { Command } from '@commander-js/extra-typings';
import { createClient } from './client.ts';
import { addDeliveryCommands } from './delivery-commands.ts';
import { addInsightCommands } from './insight-commands.ts';
import { createPrinter } from './print.ts';
import { addSignatureCommands } from './signature-commands.ts';
import { addSubscriptionCommands } from './subscription-commands.ts';
import { UserError } from './user-error.ts';
import { addWhyCommand } from './why-command.ts';

const program = new Command('posthorn')
  .description('Operates Posthorn. Set POSTHORN_URL and POSTHORN_TOKEN to a console and an operator token.')
  .option('--json', 'print JSON, for programs', false)
  .showHelpAfterError('Try posthorn --help.');
const client = createClient(process.env);
const print = createPrinter(() => program.opts().json);
addSubscriptionCommands(program, client, print);
addDeliveryCommands(program, client, print);
addInsightCommands(program, client, print);
addWhyCommand(program, client, print);
addSignatureCommands(program, client, print);

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
