/** What a kill of all processes delays and repeats: `npm run bench -- --only=killed`. */
import { benchKilled, type Killed } from '../killed.ts';
import { type Run, round } from '../run.ts';

export async function killed({ bench }: Run) {
  const killed = await benchKilled(bench);
  const row = (of: Killed) => ({
    accepted: of.accepted,
    lost: of.lost,
    'not arrived yet': of.unfinished,
    'all processes ready after s': round(of.startedMs / 1_000, 1),
    'first of them arrives after s': round(of.firstMs / 1_000, 1),
    'last of them arrives after s': round(of.allDoneMs / 1_000, 1),
    'responded to twice': of.sentTwice,
  });
  for (const { perS, receiverMs, plain, posthorn } of killed) {
    console.log(
      `All processes killed (SIGKILL) at ${perS} events a second, each with a delivery that takes ${receiverMs} ms, and started again at once; times since the kill`,
    );
    console.table({
      plain: row(plain),
      Posthorn: row(posthorn),
      goal: { lost: 0, 'last of them arrives after s': '<= 5' },
    });
  }
  return killed;
}
