/** Ends all processes that a process has started, including those in a process group of their own. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** The ids of all processes below `pid`, children first. */
export function descendantsOf(pid: number): number[] {
  const parents = parentOfEach();
  const found = [pid];
  for (const parent of found) {
    for (const [child, itsParent] of parents) if (itsParent === parent) found.push(child);
  }
  return found.slice(1);
}

/**
 * Kills all descendants of this process. They are stopped first, from the top, so that none can start another
 * meanwhile.
 */
export function killDescendants(): void {
  const stopped = new Set<number>();
  for (;;) {
    const fresh = descendantsOf(process.pid).filter((pid) => !stopped.has(pid));
    if (fresh.length === 0) break;
    for (const pid of fresh) {
      stopped.add(pid);
      signal(pid, 'SIGSTOP');
    }
  }
  for (const pid of stopped) signal(pid, 'SIGKILL');
}

/**
 * Makes SIGTERM, SIGINT and SIGHUP also kill everything that this process has started. Exits with 128 plus the signal's
 * number.
 */
export function endTreeOnSignals(): void {
  for (const [name, number] of [
    ['SIGHUP', 1],
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const) {
    // Not `once`: a terminal or `timeout` sends the signal to the whole process group, and npm forwards it as well. The
    // second signal would end this process before it has killed all others.
    process.on(name, () => {
      killDescendants();
      process.exit(128 + number);
    });
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended already.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function parentOfEach(): Map<number, number> {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
    return new Map(lines.map((line) => line.trim().split(/\s+/).map(Number) as [number, number]));
  }
  const parents = new Map<number, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // "<pid> (<name>) <state> <parent> …"; the name may contain anything.
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch (error) {
      // It has ended already.
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
  return parents;
}
