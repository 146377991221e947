/** Authenticates operators by token or by session. Guards the operator API and Bull Board. */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { AppError } from '@posthorn/core';
import { type AuthFailures, bearerOf, createKeyring, type Principal, setPrincipal } from '@posthorn/http';
import type { Clock } from '@posthorn/runtime';
import type { EncryptionKeys } from '@posthorn/signing';
import { deleteSession, loadSession, type Store as PosthornStore, saveSession } from '@posthorn/store';
import { csrfSync } from 'csrf-sync';
import type { Request, RequestHandler, Response } from 'express';
import session, { type SessionData, Store } from 'express-session';

declare module 'express-session' {
  interface SessionData {
    operator: string;
    /** Identifies the token that was used: when it is removed from the settings, the session ends. */
    fingerprint: string;
    endsAtMs: number;
  }
}

export const SESSION_COOKIE = 'posthorn_session';
/** Used over https. With this prefix, a browser accepts the cookie only from this host and over https (RFC 6265bis, section 4.1.3). */
const SECURE_SESSION_COOKIE = `__Host-${SESSION_COOKIE}`;
export const CSRF_HEADER = 'x-csrf-token';

const COOKIE = { httpOnly: true, sameSite: 'strict', path: '/' } as const;

/** A session, as the browser needs it. */
export interface SignedIn {
  operator: string;
  csrfToken: string;
  endsAtMs: number;
}

export type Operators = ReturnType<typeof createOperators>;

export function createOperators(options: {
  store: PosthornStore;
  tokens: readonly Principal[];
  failures: AuthFailures;
  /** The keys for cookies and fingerprints are derived from these. Sessions made with an older key stay valid. */
  encryptionKeys: EncryptionKeys;
  sessionLifeMs: number;
  clock: Clock;
}) {
  const { store, tokens, failures, clock, sessionLifeMs } = options;
  const find = createKeyring(tokens);
  const derive = (purpose: string) =>
    options.encryptionKeys.map((key) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32)));
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
      store: new SessionsInRedis(store, sessionLifeMs),
      resave: false,
      saveUninitialized: false,
      cookie: { ...COOKIE, secure, maxAge: sessionLifeMs },
    });
  const [sessionOverHttps, sessionOverHttp] = [sessionOver(true), sessionOver(false)];
  const withSession: RequestHandler = (request, response, next) =>
    (request.secure ? sessionOverHttps : sessionOverHttp)(request, response, next);

  /** Returns the operator of the request's session if it is valid. */
  const sessionPrincipal = (request: Request): Principal | undefined => {
    const { operator, fingerprint: used, endsAtMs } = request.session;
    const known = operator === undefined ? undefined : fingerprints.get(operator);
    if (known === undefined || used === undefined || endsAtMs === undefined || endsAtMs <= clock.now())
      return undefined;
    const matches = (fingerprint: string) =>
      fingerprint.length === used.length && timingSafeEqual(Buffer.from(fingerprint), Buffer.from(used));
    return known.some(matches) ? { name: operator!, key: '' } : undefined;
  };

  /** Returns the operator of a token that was typed in. Throws `AppError` for an unknown token, or after too many of them. */
  const checkTyped = (request: Request, kind: 'sign_in' | 'basic', token: string): Principal => {
    const principal = failures.checkTyped(request, kind, () => find(token));
    if (principal) return principal;
    throw new AppError('unauthorized', 'This is not an operator token.');
  };

  return {
    /** Sets `request.session`. Must come before the other middleware. */
    withSession,

    /** Requires an operator's token, or a session. With a session, calls that change something need its CSRF token. */
    requireOperator: ((request, response, next) => {
      const token = bearerOf(request);
      const principal = token === undefined ? sessionPrincipal(request) : find(token);
      if (!principal) {
        if (token !== undefined) failures.wrongBearer(request);
        response.set('WWW-Authenticate', 'Bearer');
        next(new AppError('unauthorized', 'Send Authorization: Bearer with an operator token, or sign in.'));
        return;
      }
      const changes = !['GET', 'HEAD'].includes(request.method);
      if (token === undefined && changes && !csrf.isRequestValid(request)) {
        next(new AppError('forbidden_csrf', `Send the session's CSRF token as ${CSRF_HEADER}.`));
        return;
      }
      setPrincipal(response, principal);
      next();
    }) satisfies RequestHandler,

    /** For read-only pages: requires a session, a bearer token, or a token as the password of HTTP Basic. */
    requireViewer: (async (request, response, next) => {
      const basic = /^Basic +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
      const token = bearerOf(request);
      const askForPassword = () =>
        response.set('WWW-Authenticate', 'Basic realm="Posthorn: any name, and an operator token as the password"');
      let principal: Principal | undefined;
      if (basic !== undefined) {
        askForPassword();
        principal = checkTyped(
          request,
          'basic',
          Buffer.from(basic, 'base64')
            .toString()
            .replace(/^[^:]*:/, ''),
        );
      } else {
        principal = token === undefined ? sessionPrincipal(request) : find(token);
      }
      if (!principal) {
        if (token !== undefined) failures.wrongBearer(request);
        askForPassword();
        throw new AppError('unauthorized', 'Sign in, or send an operator token.');
      }
      response.removeHeader('WWW-Authenticate');
      setPrincipal(response, principal);
      next();
    }) satisfies RequestHandler,

    /** Starts a session for the operator of a token. Throws `AppError`. */
    async signIn(request: Request, token: string): Promise<SignedIn> {
      const principal = checkTyped(request, 'sign_in', token);
      // A new id makes a session id that was planted in the browser worthless.
      await new Promise<void>((resolve, reject) =>
        request.session.regenerate((error) => (error ? reject(error) : resolve())),
      );
      const endsAtMs = clock.now() + sessionLifeMs;
      Object.assign(request.session, { operator: principal.name, fingerprint: fingerprintsOf(token)[0]!, endsAtMs });
      const csrfToken = csrf.generateToken(request, true);
      await new Promise<void>((resolve, reject) =>
        request.session.save((error) => (error ? reject(error) : resolve())),
      );
      return { operator: principal.name, csrfToken, endsAtMs };
    },

    /** Returns the session of this request, or undefined if it has a token instead. */
    signedIn(request: Request): SignedIn | undefined {
      const principal = bearerOf(request) === undefined ? sessionPrincipal(request) : undefined;
      return (
        principal && {
          operator: principal.name,
          csrfToken: request.session.csrfToken ?? '',
          endsAtMs: request.session.endsAtMs!,
        }
      );
    },

    /** Deletes the session of this request, in Redis and in the browser. */
    async signOut(request: Request, response: Response): Promise<void> {
      const { secure } = request;
      response.clearCookie(secure ? SECURE_SESSION_COOKIE : SESSION_COOKIE, { ...COOKIE, secure });
      await new Promise<void>((resolve, reject) =>
        request.session.destroy((error) => (error ? reject(error) : resolve())),
      );
    },
  };
}

/** The session store of express-session. Sessions end at a fixed time and are not extended by use. */
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
