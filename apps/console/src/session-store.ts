/** Keeps express-session's sessions in Redis. */
import { deleteSession, loadSession, type Store, saveSession } from '@posthorn/store';
import { type SessionData, Store as SessionStore } from 'express-session';

declare module 'express-session' {
  interface SessionData {
    operator: string;
    /** Identifies the token that was used. The session ends when the token is removed from the settings. */
    fingerprint: string;
    endsAtMs: number;
  }
}

/** Sessions end at a fixed time and are not extended by use. */
export class SessionsInRedis extends SessionStore {
  readonly #store: Store;
  readonly #lifeMs: number;

  constructor(store: Store, lifeMs: number) {
    super();
    this.#store = store;
    this.#lifeMs = lifeMs;
  }

  override get(id: string, done: (error: unknown, session?: SessionData | null) => void): void {
    readSession(this.#store, id).then((session) => done(null, session), done);
  }

  override set(id: string, data: SessionData, done: (error?: unknown) => void): void {
    saveSession(this.#store, id, JSON.stringify(data), this.#lifeMs).then(() => done(), done);
  }

  override destroy(id: string, done: (error?: unknown) => void): void {
    deleteSession(this.#store, id).then(() => done(), done);
  }
}

/** Resolves with a session, or null if there is none (any more). */
export async function readSession(store: Store, id: string): Promise<SessionData | null> {
  const text = await loadSession(store, id);
  return text === null ? null : (JSON.parse(text) as SessionData);
}
