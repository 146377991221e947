/** Runs the commands of a transaction. */
import type { ChainableCommander } from 'ioredis';

/**
 * Returns their replies, in order. Throws the first error of a command: `exec` alone would resolve with it, or, where
 * Redis refuses to queue a command, throw an EXECABORT that does not say why.
 */
export async function execAll(commands: ChainableCommander): Promise<unknown[]> {
  const replies = (await commands.exec().catch(throwCause)) ?? [];
  for (const [error] of replies) if (error) throw error;
  return replies.map(([, reply]) => reply);
}

function throwCause(error: Error & { previousErrors?: Error[] }): never {
  throw error.previousErrors?.[0] ?? error;
}
