/** Authenticates operators by token or by session. Guards the operator API and Bull Board. */
import { timingSafeEqual } from 'node:crypto';
import { AppError } from '@posthorn/core';
import { type AuthFailures, bearerOf, createKeyring, setPrincipal } from '@posthorn/http';
import type { Session } from '@posthorn/operator-api';
import type { Clock } from '@posthorn/runtime';
import { createFingerprints, deriveKeys, type Fingerprints } from '@posthorn/signing';
import type { Store } from '@posthorn/store';
import { csrfSync } from 'csrf-sync';
import type { Request, RequestHandler, Response } from 'express';
import session, { type SessionData } from 'express-session';
import type { ConsoleSettings } from './config.ts';
import { instant } from './instant.ts';
import { readSession, SessionsInRedis } from './session-store.ts';

export const SESSION_COOKIE = 'posthorn_session';
/**
 * Used over https. With this prefix, a browser accepts the cookie only from this host and over https (RFC 6265bis,
 * section 4.1.3).
 */
const SECURE_SESSION_COOKIE = `__Host-${SESSION_COOKIE}`;
export const CSRF_HEADER = 'x-csrf-token';

const COOKIE = { httpOnly: true, sameSite: 'strict', path: '/' } as const;

interface OperatorsOptions {
  store: Store;
  settings: ConsoleSettings;
  failures: AuthFailures;
  clock: Clock;
}

export class Operators {
  /** The names of all operators. */
  readonly names: string[];
  readonly #options: OperatorsOptions;
  readonly #find: ReturnType<typeof createKeyring>;
  readonly #fingerprints: Fingerprints;
  /** The fingerprints of the tokens of each operator, under each key. */
  readonly #ofTokens: ReadonlyMap<string, readonly string[]>;
  readonly #csrf = csrfSync({ size: 32, getTokenFromRequest: (request) => request.get(CSRF_HEADER) });
  readonly #sessions: { overHttps: RequestHandler; overHttp: RequestHandler };

  constructor(options: OperatorsOptions) {
    const { OPERATOR_TOKENS: tokens, SECRET_ENCRYPTION_KEY: keys } = options.settings;
    this.#options = options;
    this.names = [...new Set(tokens.map(({ name }) => name))];
    this.#find = createKeyring(tokens);
    this.#fingerprints = createFingerprints(keys, 'posthorn token fingerprint', 'base64url');
    const fingerprintsOf = (name: string) =>
      tokens.filter((token) => token.name === name).flatMap(({ key }) => this.#fingerprints.all(key));
    this.#ofTokens = new Map(this.names.map((name) => [name, fingerprintsOf(name)]));
    this.#sessions = { overHttps: sessionOver(true, options), overHttp: sessionOver(false, options) };
  }

  /** Sets `request.session`. Must come before the other middleware. */
  readonly withSession: RequestHandler = (request, response, next) => {
    const { overHttps, overHttp } = this.#sessions;
    (request.secure ? overHttps : overHttp)(request, response, next);
  };

  /** Requires an operator's token, or a session. With a session, calls that change something need its CSRF token. */
  readonly requireOperator: RequestHandler = (request, response, next) => {
    const operator = this.#authenticate(request);
    if (!operator) {
      response.set('WWW-Authenticate', 'Bearer');
      throw new AppError('unauthorized', 'Send Authorization: Bearer with an operator token, or sign in.');
    }
    const needsCsrfToken = bearerOf(request) === undefined && !['GET', 'HEAD'].includes(request.method);
    if (needsCsrfToken && !this.#csrf.isRequestValid(request))
      throw new AppError('forbidden_csrf', `Send the session's CSRF token as ${CSRF_HEADER}.`);
    setPrincipal(response, operator);
    next();
  };

  /** For read-only pages: requires a session, a bearer token, or a token as the password of HTTP Basic. */
  readonly requireViewer: RequestHandler = (request, response, next) => {
    const basic = /^Basic +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    response.set('WWW-Authenticate', 'Basic realm="Posthorn: any name, and an operator token as the password"');
    const operator =
      basic === undefined ? this.#authenticate(request) : this.#checkTyped(request, 'basic', passwordOf(basic));
    if (!operator) throw new AppError('unauthorized', 'Sign in, or send an operator token.');
    response.removeHeader('WWW-Authenticate');
    setPrincipal(response, operator);
    next();
  };

  /** Starts a session for the operator of a token. Throws `AppError`. */
  async signIn(request: Request, token: string): Promise<Session> {
    const { name: operator } = this.#checkTyped(request, 'sign_in', token);
    // A new id makes a session id that was planted in the browser worthless.
    await settled((done) => request.session.regenerate(done));
    const endsAtMs = this.#options.clock.now() + this.#options.settings.SESSION_LIFETIME;
    const fingerprint = this.#fingerprints.of(token);
    Object.assign(request.session, { operator, fingerprint, endsAtMs });
    const csrfToken = this.#csrf.generateToken(request, true);
    try {
      await settled((done) => request.session.save(done));
    } catch (error) {
      // Redis may store it later. Nobody may get its cookie then: there is no entry in the audit trail.
      request.session.destroy(() => undefined);
      throw error;
    }
    return this.#describe({ name: operator, endsAtMs }, csrfToken);
  }

  /** Returns the session of this request, or undefined if it has a token instead. */
  signedIn(request: Request): Session | undefined {
    const valid = bearerOf(request) === undefined ? this.#validSession(request.session) : undefined;
    return valid && this.#describe(valid, request.session.csrfToken ?? '');
  }

  /**
   * Resolves with whether the caller of a request that was let through is still let through: a session may end.
   * Throws if Redis is unavailable.
   */
  async isStillSignedIn(request: Request): Promise<boolean> {
    if (bearerOf(request) !== undefined) return true;
    const session = await readSession(this.#options.store, request.sessionID);
    return session !== null && this.#validSession(session) !== undefined;
  }

  /** Deletes the session of this request, in Redis and in the browser. */
  async signOut(request: Request, response: Response): Promise<void> {
    const { secure } = request;
    response.clearCookie(nameOfCookie(secure), { ...COOKIE, secure });
    await settled((done) => request.session.destroy(done));
  }

  /** Returns the operator of the request's bearer token, or of its session if it has no token. Counts a wrong token. */
  #authenticate(request: Request): { name: string } | undefined {
    const token = bearerOf(request);
    if (token === undefined) return this.#validSession(request.session);
    const operator = this.#find(token);
    if (!operator) this.#options.failures.wrongBearer(request);
    return operator;
  }

  /**
   * Returns the operator of a token that was typed in. Throws `AppError` for an unknown token, or after too many of
   * them.
   */
  #checkTyped(request: Request, kind: 'sign_in' | 'basic', token: string): { name: string } {
    const operator = this.#options.failures.checkTyped(request, kind, () => this.#find(token));
    if (operator) return operator;
    throw new AppError('unauthorized', 'This is not an operator token.');
  }

  /** Returns the operator and the end of a session if it is valid. */
  #validSession(session: Partial<SessionData>): { name: string; endsAtMs: number } | undefined {
    const { operator, fingerprint: used, endsAtMs } = session;
    if (operator === undefined || used === undefined || endsAtMs === undefined) return undefined;
    if (endsAtMs <= this.#options.clock.now()) return undefined;
    const matches = (fingerprint: string) =>
      fingerprint.length === used.length && timingSafeEqual(Buffer.from(fingerprint), Buffer.from(used));
    return this.#ofTokens.get(operator)?.some(matches) ? { name: operator, endsAtMs } : undefined;
  }

  #describe({ name, endsAtMs }: { name: string; endsAtMs: number }, csrfToken: string): Session {
    return { operator: name, operators: this.names, csrf_token: csrfToken, expires_at: instant(endsAtMs) };
  }
}

function sessionOver(secure: boolean, { store, settings }: OperatorsOptions): RequestHandler {
  const { SECRET_ENCRYPTION_KEY: keys, SESSION_LIFETIME: lifeMs } = settings;
  return session({
    name: nameOfCookie(secure),
    secret: deriveKeys(keys, 'posthorn session cookie').map((key) => key.toString('base64')),
    // One store per cookie: express-session attaches the cookie's options to the store.
    store: new SessionsInRedis(store, lifeMs),
    resave: false,
    saveUninitialized: false,
    cookie: { ...COOKIE, secure, maxAge: lifeMs },
  });
}

function nameOfCookie(secure: boolean): string {
  return secure ? SECURE_SESSION_COOKIE : SESSION_COOKIE;
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
