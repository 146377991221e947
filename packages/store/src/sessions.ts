/** The sessions of signed-in operators: texts that expire. Their content is left to the console. */
import { countingChange } from './changes.ts';
import { sessionKey } from './keys.ts';
import type { Store } from './store.ts';

/** Keeps a session for `lifeMs`. */
export async function saveSession(store: Store, id: string, text: string, lifeMs: number): Promise<void> {
  await countingChange(() =>
    store.redis.set(sessionKey(store.prefix, id), text, 'PX', Math.max(1, Math.round(lifeMs))),
  );
}

/** A session's text, or null where there is none (any more). */
export async function loadSession(store: Store, id: string): Promise<string | null> {
  return await store.redis.get(sessionKey(store.prefix, id));
}

export async function deleteSession(store: Store, id: string): Promise<void> {
  await countingChange(() => store.redis.del(sessionKey(store.prefix, id)));
}
