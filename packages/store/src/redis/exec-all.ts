/** Runs the commands of a transaction. */
import type { ChainableCommander } from 'ioredis';

/** Returns their replies, in order. Throws the first error of a command: `exec` alone would resolve with it. */
export async function execAll(commands: ChainableCommander): Promise<unknown[]> {
  const replies = (await commands.exec()) ?? [];
  for (const [error] of replies) if (error) throw error;
  return replies.map(([, reply]) => reply);
}
