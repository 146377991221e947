/** `npm run posthorn -- …`: the command line for operators. */
import { createClient, UserError } from './client.ts';
import { createProgram } from './commands.ts';
import { createPrinter } from './print.ts';

const write = (text: string) => void process.stdout.write(text);
const program = createProgram(
  () => createClient(process.env),
  ({ json }) => createPrinter({ json, write }),
);
try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
