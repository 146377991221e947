/** Who operates: a token with each call, or a session that a browser got for one. Guards the operator API and Bull Board. */
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
    /** Of the token that was used: when that is withdrawn, so is the session. */
    fingerprint: string;
    endsAtMs: number;
  }
}

export const SESSION_COOKIE = 'posthorn_session';
/** Over https. Because of its prefix a browser takes it from this host alone, over https alone (RFC 6265bis, section 4.1.3). */
const SECURE_SESSION_COOKIE = `__Host-${SESSION_COOKIE}`;
export const CSRF_HEADER = 'x-csrf-token';

const COOKIE = { httpOnly: true, sameSite: 'strict', path: '/' } as const;

/** A signed-in operator, as a browser needs to know. */
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
  /** Keys for cookies and fingerprints are derived from them. A session that began under an older one of them goes on. */
  encryptionKeys: EncryptionKeys;
  sessionLifeMs: number;
  clock: Clock;
}) {
  const { store, tokens, failures, clock, sessionLifeMs } = options;
  const find = createKeyring(tokens);
  const derive = (purpose: string) =>
    options.encryptionKeys.map((key) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32)));
  const fingerprintKeys = derive('posthorn token fingerprint');
  /** Of a token under each key, the first key first. */
  const fingerprintsOf = (token: string) =>
    fingerprintKeys.map((key) => createHmac('sha256', key).update(token).digest('base64url'));
  const fingerprints = new Map(tokens.map(({ name, key }) => [name, fingerprintsOf(key)]));
  const csrf = csrfSync({ size: 32, getTokenFromRequest: (request) => request.get(CSRF_HEADER) });
  const sessionOver = (secure: boolean) =>
    session({
      name: secure ? SECURE_SESSION_COOKIE : SESSION_COOKIE,
      secret: derive('posthorn session cookie').map((key) => key.toString('base64')),
      // One each: express-session keeps how a cookie is made in its store.
      store: new SessionsInRedis(store, sessionLifeMs),
      resave: false,
      saveUninitialized: false,
      cookie: { ...COOKIE, secure, maxAge: sessionLifeMs },
    });
  const [sessionOverHttps, sessionOverHttp] = [sessionOver(true), sessionOver(false)];
  const withSession: RequestHandler = (request, response, next) =>
    (request.secure ? sessionOverHttps : sessionOverHttp)(request, response, next);

  /** The operator of the request's session, if it holds. */
  const sessionPrincipal = (request: Request): Principal | undefined => {
    const { operator, fingerprint: used, endsAtMs } = request.session;
    const known = operator === undefined ? undefined : fingerprints.get(operator);
    if (known === undefined || used === undefined || endsAtMs === undefined || endsAtMs <= clock.now())
      return undefined;
    const matches = (one: string) => one.length === used.length && timingSafeEqual(Buffer.from(one), Buffer.from(used));
    return known.some(matches) ? { name: operator!, key: '' } : undefined;
  };

  /** A token that somebody typed in. Throws `AppError`: unknown, or too many unknown ones from this client. */
  const checkTyped = (request: Request, kind: 'sign_in' | 'basic', token: string): Principal => {
    const principal = failures.checkTyped(request, kind, () => find(token));
    if (principal) return principal;
    throw new AppError('unauthorized', 'This is not the token of an operator.');
  };

  return {
    /** Makes `request.session`; comes before everything below. */
    withSession,

    /** Lets a call pass that carries an operator's token, or an operator's session and, if it changes something, its CSRF token. */
    requireOperator: ((request, response, next) => {
      const token = bearerOf(request);
      const principal = token === undefined ? sessionPrincipal(request) : find(token);
      if (!principal) {
        if (token !== undefined) failures.wrongBearer(request);
        response.set('WWW-Authenticate', 'Bearer');
        next(new AppError('unauthorized', 'Send Authorization: Bearer with the token of an operator, or sign in.'));
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

    /** Lets a browser pass that only looks: by its session, by a bearer token, or by the password that it asks its user for. */
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

    /** Begins a session for the principal of a token. Throws `AppError`. */
    async signIn(request: Request, token: string): Promise<SignedIn> {
      const principal = checkTyped(request, 'sign_in', token);
      // A new id, so that one planted in the browser before is worth nothing.
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

    /** The session of this request, or undefined where the call carries a token instead. */
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

    /** Ends the session of this request, in Redis and in the browser. */
    async signOut(request: Request, response: Response): Promise<void> {
      const { secure } = request;
      response.clearCookie(secure ? SECURE_SESSION_COOKIE : SESSION_COOKIE, { ...COOKIE, secure });
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
