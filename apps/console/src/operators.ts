/** Who operates: a token with each call, or a session that a browser got for one. Guards the operator API and Bull Board. */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { AppError } from '@posthorn/core';
import { bearerOf, type Clock, createKeyring, createRateLimit, type Holder, keepHolder } from '@posthorn/runtime';
import { clientNetwork } from '@posthorn/sender';
import type { EncryptionKeys } from '@posthorn/signing';
import { deleteSession, loadSession, type Store as PosthornStore, saveSession } from '@posthorn/store';
import { csrfSync } from 'csrf-sync';
import type { Request, RequestHandler, Response } from 'express';
import session, { type SessionData, Store } from 'express-session';

declare module 'express-session' {
  interface SessionData {
    operator: string;
    /** Of the token that was used: when that is withdrawn, so is the session. */
    fingerprint: string;
    endsAtMs: number;
  }
}

export const SESSION_COOKIE = 'posthorn_session';
export const CSRF_HEADER = 'x-csrf-token';
/** Wrong tokens that one client may send before it has to wait. */
const FAILED_SIGN_INS = 10;
const FAILED_SIGN_INS_WINDOW_S = 15 * 60;

/** A signed-in operator, as a browser needs to know. */
export interface SignedIn {
  operator: string;
  csrfToken: string;
  endsAtMs: number;
}

export type Operators = ReturnType<typeof createOperators>;

export function createOperators(options: {
  store: PosthornStore;
  tokens: readonly Holder[];
  /** Keys for cookies and fingerprints are derived from them. A session that began under an older one of them goes on. */
  encryptionKeys: EncryptionKeys;
  sessionLifeMs: number;
  clock: Clock;
}) {
  const { store, tokens, clock, sessionLifeMs } = options;
  const find = createKeyring(tokens);
  const derive = (purpose: string) =>
    options.encryptionKeys.map((key) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32)));
  const fingerprintKeys = derive('posthorn token fingerprint');
  /** Of a token under each key, the first key first. */
  const fingerprintsOf = (token: string) =>
    fingerprintKeys.map((key) => createHmac('sha256', key).update(token).digest('base64url'));
  const fingerprints = new Map(tokens.map(({ name, key }) => [name, fingerprintsOf(key)]));
  const csrf = csrfSync({ size: 32, getTokenFromRequest: (request) => request.get(CSRF_HEADER) });
  const failures = createRateLimit({
    redis: store.redis,
    keyPrefix: `${store.prefix}:limit:sign-in`,
    points: FAILED_SIGN_INS,
    seconds: FAILED_SIGN_INS_WINDOW_S,
    message: 'Too many failed sign-ins from this address. Wait, then try again.',
  });
  const withSession = session({
    name: SESSION_COOKIE,
    secret: derive('posthorn session cookie').map((key) => key.toString('base64')),
    store: new SessionsInRedis(store, sessionLifeMs),
    resave: false,
    saveUninitialized: false,
    cookie: { httpOnly: true, sameSite: 'strict', secure: 'auto', maxAge: sessionLifeMs, path: '/' },
  });

  /** The operator of the request's session, if it holds. */
  const sessionHolder = (request: Request): Holder | undefined => {
    const { operator, fingerprint: used, endsAtMs } = request.session;
    const known = operator === undefined ? undefined : fingerprints.get(operator);
    if (known === undefined || used === undefined || endsAtMs === undefined || endsAtMs <= clock.now())
      return undefined;
    const matches = (one: string) => one.length === used.length && timingSafeEqual(Buffer.from(one), Buffer.from(used));
    return known.some(matches) ? { name: operator!, key: '' } : undefined;
  };

  /** A token that somebody typed in. Throws `AppError`: unknown, or too many unknown ones from this client. */
  const checkTyped = async (request: Request, token: string): Promise<Holder> => {
    const client = clientNetwork(request.ip ?? 'unknown');
    await failures.check(client);
    const holder = find(token);
    if (holder) return holder;
    await failures.consume(client);
    throw new AppError('unauthorized', 'This is not the token of an operator.');
  };

  return {
    /** Makes `request.session`; comes before everything below. */
    withSession,

    /** Lets a call pass that carries an operator's token, or an operator's session and, if it changes something, its CSRF token. */
    requireOperator: ((request, response, next) => {
      const token = bearerOf(request);
      const holder = token === undefined ? sessionHolder(request) : find(token);
      if (!holder) {
        response.set('WWW-Authenticate', 'Bearer');
        next(new AppError('unauthorized', 'Send Authorization: Bearer with the token of an operator, or sign in.'));
        return;
      }
      const changes = !['GET', 'HEAD'].includes(request.method);
      if (token === undefined && changes && !csrf.isRequestValid(request)) {
        next(new AppError('forbidden_csrf', `Send the session's CSRF token as ${CSRF_HEADER}.`));
        return;
      }
      keepHolder(response, holder);
      next();
    }) satisfies RequestHandler,

    /** Lets a browser pass that only looks: by its session, by a bearer token, or by the password that it asks its user for. */
    requireViewer: (async (request, response, next) => {
      const basic = /^Basic +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
      const token = bearerOf(request);
      const askForPassword = () =>
        response.set('WWW-Authenticate', 'Basic realm="Posthorn: any name, and an operator token as the password"');
      let holder: Holder | undefined;
      if (basic !== undefined) {
        askForPassword();
        holder = await checkTyped(
          request,
          Buffer.from(basic, 'base64')
            .toString()
            .replace(/^[^:]*:/, ''),
        );
      } else {
        holder = token === undefined ? sessionHolder(request) : find(token);
      }
      if (!holder) {
        askForPassword();
        throw new AppError('unauthorized', 'Sign in, or send an operator token.');
      }
      response.removeHeader('WWW-Authenticate');
      keepHolder(response, holder);
      next();
    }) satisfies RequestHandler,

    /** Begins a session for the holder of a token. Throws `AppError`. */
    async signIn(request: Request, token: string): Promise<SignedIn> {
      const holder = await checkTyped(request, token);
      // A new id, so that one planted in the browser before is worth nothing.
      await new Promise<void>((resolve, reject) =>
        request.session.regenerate((error) => (error ? reject(error) : resolve())),
      );
      const endsAtMs = clock.now() + sessionLifeMs;
      Object.assign(request.session, { operator: holder.name, fingerprint: fingerprintsOf(token)[0]!, endsAtMs });
      const csrfToken = csrf.generateToken(request, true);
      await new Promise<void>((resolve, reject) =>
        request.session.save((error) => (error ? reject(error) : resolve())),
      );
      return { operator: holder.name, csrfToken, endsAtMs };
    },

    /** The session of this request, or undefined where the call carries a token instead. */
    signedIn(request: Request): SignedIn | undefined {
      const holder = bearerOf(request) === undefined ? sessionHolder(request) : undefined;
      return (
        holder && {
          operator: holder.name,
          csrfToken: request.session.csrfToken ?? '',
          endsAtMs: request.session.endsAtMs!,
        }
      );
    },

    /** Ends the session of this request, in Redis and in the browser. */
    async signOut(request: Request, response: Response): Promise<void> {
      response.clearCookie(SESSION_COOKIE, { httpOnly: true, sameSite: 'strict', path: '/' });
      await new Promise<void>((resolve, reject) =>
        request.session.destroy((error) => (error ? reject(error) : resolve())),
      );
    },
  };
}

/** Where express-session keeps its sessions. They end at a fixed time, however much they are used. */
class SessionsInRedis extends Store {
  private readonly sessions: PosthornStore;
  private readonly lifeMs: number;

  constructor(sessions: PosthornStore, lifeMs: number) {
    super();
    this.sessions = sessions;
    this.lifeMs = lifeMs;
  }

  override get(id: string, done: (error: unknown, session?: SessionData | null) => void): void {
    loadSession(this.sessions, id).then(
      (text) => done(null, text === null ? null : (JSON.parse(text) as SessionData)),
      done,
    );
  }

  override set(id: string, data: SessionData, done: (error?: unknown) => void = () => undefined): void {
    saveSession(this.sessions, id, JSON.stringify(data), this.lifeMs).then(() => done(), done);
  }

  override destroy(id: string, done: (error?: unknown) => void = () => undefined): void {
    deleteSession(this.sessions, id).then(() => done(), done);
  }
}
