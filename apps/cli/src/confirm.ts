/** Asks the user. */
import { createInterface } from 'node:readline/promises';
import { UserError } from './user-error.ts';

/** Resolves with whether the user agrees. Throws `UserError` where nobody can be asked. */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UserError(`${question} Not an interactive terminal; pass --yes.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const reply = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(reply.trim());
}
