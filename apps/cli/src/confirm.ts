/** Asks the user. */
import { createInterface } from 'node:readline/promises';
import { UserError } from './user-error.ts';

/**
 * Resolves with whether the user agrees; Ctrl-C and Ctrl-D mean no. Throws `UserError` without an interactive terminal.
 */
export async function confirm(question: string): Promise<boolean> {
  // It has ended where the command has read a file from it.
  if (!process.stdin.isTTY || process.stdin.readableEnded)
    throw new UserError(`${question} Not an interactive terminal; pass --yes.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  // Without this, `question` would never settle if the terminal goes away.
  terminal.once('close', () => closed.abort());
  try {
    const reply = await terminal.question(`${question} [y/N] `, { signal: closed.signal });
    return /^y(es)?$/i.test(reply.trim());
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    return false;
  } finally {
    terminal.close();
  }
}
