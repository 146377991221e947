/** For tests: a script that is sent again because its reply was lost, as ioredis does after it has connected again. */
import { jest } from '@jest/globals';
import type { ScriptName } from './scripts.ts';
import type { Store } from './store.ts';

type Send = (...args: unknown[]) => Promise<unknown>;

/** The next call of the script runs it twice, with `between` in between, and gets the second reply. */
export function sendTwice(store: Store, script: ScriptName, between = async (): Promise<void> => undefined): void {
  const name = `script_${script}`;
  const scripts = store.redis as unknown as Record<string, Send>;
  const send = scripts[name]!.bind(store.redis);
  const spy = jest.spyOn(scripts, name).mockImplementationOnce(async (...args) => {
    spy.mockRestore();
    await send(...args);
    await between();
    return await send(...args);
  });
}
