/** The command line for operators: `npm run posthorn -- …`, `npx posthorn …`. */
import { createClient } from './client.ts';
import { createPrinter } from './print.ts';
import { createProgram } from './program.ts';
import { UserError } from './user-error.ts';

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
