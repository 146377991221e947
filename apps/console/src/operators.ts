/** Authenticates operators by token or by session. Guards the operator API and Bull Board. */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { AppError } from '@posthorn/core';
import { type AuthFailures, bearerOf, createKeyring, type Principal, setPrincipal } from '@posthorn/http';
import type { Session } from '@posthorn/operator-api';
import type { Clock } from '@posthorn/runtime';
import { deleteSession, loadSession, type Store as PosthornStore, saveSession } from '@posthorn/store';
import { csrfSync } from 'csrf-sync';
import type { Request, RequestHandler, Response } from 'express';
import session, { type SessionData, Store } from 'express-session';
import type { ConsoleSettings } from './config.ts';
import { instant } from './instant.ts';

declare module 'express-session' {
  interface SessionData {
    operator: string;
    /** Identifies the token that was used. The session ends when the token is removed from the settings. */
    fingerprint: string;
    endsAtMs: number;
  }
}

export const SESSION_COOKIE = 'posthorn_session';
/** Used over https. With this prefix, a browser accepts the cookie only from this host and over https (RFC 6265bis, section 4.1.3). */
const SECURE_SESSION_COOKIE = `__Host-${SESSION_COOKIE}`;
export const CSRF_HEADER = 'x-csrf-token';

const COOKIE = { httpOnly: true, sameSite: 'strict', path: '/' } as const;

export type Operators = ReturnType<typeof createOperators>;

export function createOperators(options: {
  store: PosthornStore;
  settings: ConsoleSettings;
  failures: AuthFailures;
  clock: Clock;
}) {
  const { store, settings, failures, clock } = options;
  const { OPERATOR_TOKENS: tokens, SESSION_LIFETIME: sessionLifeMs } = settings;
  const names = tokens.map(({ name }) => name);
  const find = createKeyring(tokens);
  /** Returns a key for each encryption key. Sessions that were started with an older key stay valid. */
  const derive = (purpose: string) =>
    settings.SECRET_ENCRYPTION_KEY.map((key) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32)));
  const fingerprintKeys = derive('posthorn token fingerprint');
  /** Returns the fingerprints of a token under each key, in the order of the keys. */
  const fingerprintsOf = (token: string) =>
    fingerprintKeys.map((key) => createHmac('sha256', key).update(token).digest('base64url'));
  const fingerprints = new Map(tokens.map(({ name, key }) => [name, fingerprintsOf(key)]));
  const csrf = csrfSync({ size: 32, getTokenFromRequest: (request) => request.get(CSRF_HEADER) });
  const sessionOver = (secure: boolean) =>
    session({
      name: secure ? SECURE_SESSION_COOKIE : SESSION_COOKIE,
      secret: derive('posthorn session cookie').map((key) => key.toString('base64')),
      // One store per cookie: express-session attaches the cookie's options to the store.
      store: createSessionStore(store, sessionLifeMs),
      resave: false,
      saveUninitialized: false,
      cookie: { ...COOKIE, secure, maxAge: sessionLifeMs },
    });
  const [sessionOverHttps, sessionOverHttp] = [sessionOver(true), sessionOver(false)];

  /** Returns the operator and the end of a session if it is valid. */
  const validSession = ({ operator, fingerprint: used, endsAtMs }: Partial<SessionData>) => {
    if (operator === undefined || used === undefined || endsAtMs === undefined || endsAtMs <= clock.now())
      return undefined;
    const matches = (fingerprint: string) =>
      fingerprint.length === used.length && timingSafeEqual(Buffer.from(fingerprint), Buffer.from(used));
    return fingerprints.get(operator)?.some(matches) ? { name: operator, endsAtMs } : undefined;
  };

  /** Returns the operator of the request's bearer token, or of its session if it has no token. Counts a wrong token. */
  const authenticate = (request: Request) => {
    const token = bearerOf(request);
    if (token === undefined) return validSession(request.session);
    const operator = find(token);
    if (!operator) failures.wrongBearer(request);
    return operator;
  };

  /** Returns the operator of a token that was typed in. Throws `AppError` for an unknown token, or after too many of them. */
  const checkTyped = (request: Request, kind: 'sign_in' | 'basic', token: string): Principal => {
    const operator = failures.checkTyped(request, kind, () => find(token));
    if (operator) return operator;
    throw new AppError('unauthorized', 'This is not an operator token.');
  };

  return {
    /** The names of all operators. */
    names,

    /** Sets `request.session`. Must come before the other middleware. */
    withSession: ((request, response, next) =>
      (request.secure ? sessionOverHttps : sessionOverHttp)(request, response, next)) satisfies RequestHandler,

    /** Requires an operator's token, or a session. With a session, calls that change something need its CSRF token. */
    requireOperator: ((request, response, next) => {
      const operator = authenticate(request);
      if (!operator) {
        response.set('WWW-Authenticate', 'Bearer');
        throw new AppError('unauthorized', 'Send Authorization: Bearer with an operator token, or sign in.');
      }
      const needsCsrfToken = bearerOf(request) === undefined && !['GET', 'HEAD'].includes(request.method);
      if (needsCsrfToken && !csrf.isRequestValid(request))
        throw new AppError('forbidden_csrf', `Send the session's CSRF token as ${CSRF_HEADER}.`);
      setPrincipal(response, operator);
      next();
    }) satisfies RequestHandler,

    /** For read-only pages: requires a session, a bearer token, or a token as the password of HTTP Basic. */
    requireViewer: ((request, response, next) => {
      const basic = /^Basic +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
      response.set('WWW-Authenticate', 'Basic realm="Posthorn: any name, and an operator token as the password"');
      const operator = basic === undefined ? authenticate(request) : checkTyped(request, 'basic', passwordOf(basic));
      if (!operator) throw new AppError('unauthorized', 'Sign in, or send an operator token.');
      response.removeHeader('WWW-Authenticate');
      setPrincipal(response, operator);
      next();
    }) satisfies RequestHandler,

    /** Starts a session for the operator of a token. Throws `AppError`. */
    async signIn(request: Request, token: string): Promise<Session> {
      const { name: operator } = checkTyped(request, 'sign_in', token);
      // A new id makes a session id that was planted in the browser worthless.
      await settled((done) => request.session.regenerate(done));
      const endsAtMs = clock.now() + sessionLifeMs;
      const [fingerprint] = fingerprintsOf(token);
      Object.assign(request.session, { operator, fingerprint, endsAtMs });
      const csrfToken = csrf.generateToken(request, true);
      await settled((done) => request.session.save(done));
      return { operator, operators: names, csrf_token: csrfToken, expires_at: instant(endsAtMs) };
    },

    /** Returns the session of this request, or undefined if it has a token instead. */
    signedIn(request: Request): Session | undefined {
      const valid = bearerOf(request) === undefined ? validSession(request.session) : undefined;
      const csrf_token = request.session.csrfToken ?? '';
      return valid && { operator: valid.name, operators: names, csrf_token, expires_at: instant(valid.endsAtMs) };
    },

    /**
     * Resolves with whether the caller of a request that was let through is still let through: a session may end.
     * Throws if Redis is unavailable.
     */
    async isStillSignedIn(request: Request): Promise<boolean> {
      if (bearerOf(request) !== undefined) return true;
      const text = await loadSession(store, request.sessionID);
      return text !== null && validSession(JSON.parse(text) as SessionData) !== undefined;
    },

    /** Deletes the session of this request, in Redis and in the browser. */
    async signOut(request: Request, response: Response): Promise<void> {
      const { secure } = request;
      response.clearCookie(secure ? SECURE_SESSION_COOKIE : SESSION_COOKIE, { ...COOKIE, secure });
      await settled((done) => request.session.destroy(done));
    },
  };
}

/** Returns the password of HTTP Basic credentials. */
function passwordOf(basic: string): string {
  return Buffer.from(basic, 'base64')
    .toString()
    .replace(/^[^:]*:/, '');
}

/** Resolves or rejects when `start` calls back. */
function settled(start: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())));
}

/** Creates a session store for express-session. Sessions end at a fixed time and are not extended by use. */
function createSessionStore(store: PosthornStore, lifeMs: number): Store {
  class SessionsInRedis extends Store {
    override get(id: string, done: (error: unknown, session?: SessionData | null) => void): void {
      loadSession(store, id).then((text) => done(null, text === null ? null : (JSON.parse(text) as SessionData)), done);
    }
    override set(id: string, data: SessionData, done: (error?: unknown) => void): void {
      saveSession(store, id, JSON.stringify(data), lifeMs).then(() => done(), done);
    }
    override destroy(id: string, done: (error?: unknown) => void): void {
      deleteSession(store, id).then(() => done(), done);
    }
  }
  return new SessionsInRedis();
}
