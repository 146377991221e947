/** Calls the operator API and reports failures in words. */
import { setTimeout as wait } from 'node:timers/promises';
import { type ErrorCode, errorCodes } from '@posthorn/core';
import { listOf, MAX_PAGE_LIMIT } from '@posthorn/operator-api';
import { z } from 'zod';
import { findConsole } from './find-console.ts';
import { pages } from './pages.ts';
import { harmless } from './print.ts';
import { UserError } from './user-error.ts';
import { readVersion } from './version.ts';

export type Query = Record<string, string | number | undefined>;

/** Each call checks the response with `schema`. All throw `UserError`. */
export interface Client {
  /** Resolves with the response of a stream of events, from Last-Event-ID on. */
  open(path: string, query: Query, lastId: string | undefined): Promise<Response>;
  /** Resolves with undefined for a response with status 204. */
  call<S extends z.ZodType>(schema: S, method: string, path: string, body?: unknown): Promise<z.output<S>>;
  get<S extends z.ZodType>(schema: S, path: string, query?: Query): Promise<z.output<S>>;
  post<S extends z.ZodType>(schema: S, path: string, body?: unknown): Promise<z.output<S>>;
  patch<S extends z.ZodType>(schema: S, path: string, body: unknown): Promise<z.output<S>>;
  delete(path: string): Promise<void>;
  /**
   * Returns the first `limit` items of a list, read page by page. Calls `leftOut` with the ids of records that can't be
   * read, which are not among them; by default it says so on stderr.
   */
  list<S extends z.ZodType>(
    itemSchema: S,
    path: string,
    query: Query,
    limit: number,
    leftOut?: (ids: string[]) => void,
  ): Promise<z.output<S>[]>;
}

/** As long as a console keeps a connection without traffic: no call takes longer. */
const RESPONSE_TIMEOUT_MS = 120_000;
/**
 * A refusal with 429 for at most so long, as that of the rate limit per second, is waited for: nothing was carried out.
 */
const MAX_RETRY_AFTER_S = 2;
/** Refusals in a row after which a call fails: others with this token then use the whole rate limit. */
const MAX_REFUSALS = 10;
const IS_IT_A_CONSOLE = 'Is POSTHORN_URL the address of a console?';
const MAYBE_DONE = 'The call may have been carried out: look before you repeat it.';
/** Of the console's 5xx, those after which nothing was changed. The `detail` of all others says what may have been. */
const NOTHING_CHANGED: readonly string[] = ['overloaded', 'not_changed'] satisfies ErrorCode[];
const problemSchema = z.object({
  detail: z.string(),
  code: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
});

/** Returns a client of the console that `findConsole` finds at the first call. */
export function createClient(env: NodeJS.ProcessEnv): Client {
  let found: ReturnType<typeof findConsole> | undefined;
  const send = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
    found ??= findConsole(env);
    const { url, token, tokenFrom } = found;
    // A redirect that is followed leaves out the token, and turns a POST into a GET.
    const options = { method, headers: { authorization: `Bearer ${token}`, ...headers }, redirect: 'manual' } as const;
    const used = `(${method} ${url}${path.split('?')[0]})`;
    // For example from a script's variable that is not set. The path of an item without its id is the path of the list,
    // and fetch resolves "." and "..".
    const missing = /\/(\.{0,2})(?:\/|$)/.exec(path.split('?')[0] ?? '');
    if (missing) throw new UserError(`An id is ${missing[1] ? `"${missing[1]}"` : 'empty'}. ${used}`);
    const fail = (cause: unknown): never => {
      const failure = ((cause as Error).cause ?? cause) as NodeJS.ErrnoException;
      const why = failure.message || failure.code;
      if (method !== 'GET' && isSent(failure))
        throw new UserError(`The console has not answered: ${why}. ${MAYBE_DONE} ${used}`, { cause, mayBeDone: true });
      throw new UserError(`Cannot reach a console at ${url}: ${why}. Is it running? Is POSTHORN_URL right?`, { cause });
    };
    const once = async () => {
      const limit = new AbortController();
      const late = new DOMException(`no response for ${RESPONSE_TIMEOUT_MS / 1_000} s`, 'TimeoutError');
      const timer = setTimeout(() => limit.abort(late), RESPONSE_TIMEOUT_MS);
      const request = fetch(`${url}${path}`, { ...options, signal: limit.signal, ...(body !== undefined && { body }) });
      return await request.catch(fail).finally(() => clearTimeout(timer));
    };
    let response = await once();
    for (let refusals = 1; isBrieflyRefused(response) && refusals < MAX_REFUSALS; refusals += 1) {
      await response.body?.cancel();
      await wait(retryAfterS(response) * 1_000);
      response = await once();
    }
    const content = async () => parseJson(await response.text().catch(fail));
    if (response.status === 401)
      throw new UserError(`${url} refused the operator token from ${tokenFrom}. ${used}`, { status: 401 });
    if (!response.ok) {
      const { status } = response;
      const location = response.headers.get('location');
      if (location !== null)
        throw new UserError(`${url} redirects to ${location}. ${IS_IT_A_CONSOLE} ${used}`, { status });
      const problem = problemSchema.safeParse(await content()).data;
      const { code = '' } = problem ?? {};
      const mayBeDone = method !== 'GET' && status >= 500 && !NOTHING_CHANGED.includes(code);
      // Such as a proxy's 504, which knows nothing of the change.
      const also = mayBeDone && !(code in errorCodes) ? MAYBE_DONE : undefined;
      throw new UserError(describeProblem(status, problem, also, used), { status, mayBeDone });
    }
    return { response, content, used };
  };
  const call = async <S extends z.ZodType>(schema: S, method: string, path: string, body?: unknown) => {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string> = json === undefined ? {} : { 'content-type': 'application/json' };
    const { response, content, used } = await send(method, path, headers, json);
    const found = await content();
    const wrong = found === undefined && response.status !== 204 ? '' : whereWrong(schema, found);
    if (wrong !== undefined) throw notOfConsole(wrong, method, used, response.status);
    return found as z.output<typeof schema>;
  };
  const get: Client['get'] = (schema, path, query = {}) => call(schema, 'GET', path + search(query));
  return {
    async open(path, query, lastId) {
      const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
      const { response, used } = await send('GET', path + search(query), headers);
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
      await response.body?.cancel();
      throw notOfConsole('', 'GET', used, response.status);
    },
    call,
    get,
    post: (schema, path, body) => call(schema, 'POST', path, body),
    patch: (schema, path, body) => call(schema, 'PATCH', path, body),
    delete: (path) => call(z.undefined(), 'DELETE', path),
    async list(itemSchema, path, query, limit, leftOut = tellLeftOut) {
      const items: z.output<typeof itemSchema>[] = [];
      const unreadable: string[] = [];
      let isTold = false;
      const load = async (cursor: string | undefined) => {
        const upTo = Math.min(MAX_PAGE_LIMIT, limit - items.length);
        const page = await get(listOf(itemSchema), path, { ...query, limit: upTo, cursor });
        unreadable.push(...(page.unreadable ?? []));
        if (page.data.length === 0 && page.next_cursor !== null && !isTold) {
          process.stderr.write(`${searchingText(query.from)}\n`);
          isTold = true;
        }
        return page;
      };
      for await (const found of pages(load)) {
        items.push(...found);
        if (items.length >= limit) break;
      }
      if (unreadable.length > 0) leftOut(unreadable);
      return items;
    },
  };
}

/** Ids of records that can't be read that one line names. */
const MAX_UNREADABLE_SHOWN = 10;

/** Says on stderr which records a response leaves out. */
export function tellLeftOut(ids: string[]): void {
  process.stderr.write(`${unreadableText(ids)}\n`);
}

/** What to know about records that a list leaves out. */
export function unreadableText(ids: readonly string[]): string {
  const shown = ids.slice(0, MAX_UNREADABLE_SHOWN).map(harmless).join(', ');
  const more = ids.length > MAX_UNREADABLE_SHOWN ? `, and ${ids.length - MAX_UNREADABLE_SHOWN} more` : '';
  const count = ids.length === 1 ? '1 record' : `${ids.length} records`;
  return `${count} can't be read and ${ids.length === 1 ? 'is' : 'are'} left out: ${shown}${more}. See "A record that can't be read" in docs/runbooks.md.`;
}

/** The line for a page without items that is not the last one: the calls that follow may find nothing for minutes. */
function searchingText(from: Query[string]): string {
  if (from !== undefined) return `Few or none of the newest match. Searching back to ${from}.`;
  return 'Few or none of the newest match. Searching back to the oldest that is kept, which may take minutes: --from 1h searches the last hour only.';
}

/** Whether the rate limit refused a call, which a repetition a moment later passes. */
function isBrieflyRefused(response: Response): boolean {
  return response.status === 429 && retryAfterS(response) <= MAX_RETRY_AFTER_S;
}

/** Returns infinity if the response does not say when to repeat the call. */
function retryAfterS({ headers }: Response): number {
  const text = headers.get('retry-after') ?? '';
  return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
}

/** Whether a call failed on an established connection, so that the console may have received it. */
function isSent({ code = '', name }: NodeJS.ErrnoException): boolean {
  const codes = ['UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ECONNRESET', 'EPIPE'];
  return codes.includes(code) || name === 'HTTPParserError' || name === 'TimeoutError';
}

/**
 * Returns where the content of a response has not the form of `schema`, such as ` at data.0.id`; undefined if it has. A
 * newer console may return more fields.
 */
function whereWrong(schema: z.ZodType, content: unknown): string | undefined {
  const issue = schema.safeParse(content).error?.issues.find(({ code }) => code !== 'unrecognized_keys');
  if (issue === undefined) return undefined;
  return issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`;
}

function notOfConsole(where: string, method: string, used: string, status: number): UserError {
  const release = `Or is it of an earlier release than this command line, ${readVersion()}?`;
  const mayBeDone = method !== 'GET';
  const also = mayBeDone ? ` ${MAYBE_DONE}` : '';
  const what = `The response is not that of a console${where}. ${IS_IT_A_CONSOLE} ${release}${also} ${used}`;
  return new UserError(what, { status, mayBeDone });
}

function search(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

/** Returns undefined for text that is not JSON: it does not come from the operator API. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `used` names the call, so that a wrong URL is seen; `also` is what to do next. */
function describeProblem(
  status: number,
  problem: z.output<typeof problemSchema> | undefined,
  also: string | undefined,
  used: string,
): string {
  if (!problem) return `The console returned status ${status} without a reason. ${also ?? IS_IT_A_CONSOLE} ${used}`;
  const { detail, errors } = problem;
  return [
    [detail, also, used].filter(Boolean).join(' '),
    ...errors.map(({ path, message }) => `  ${path || 'all'}: ${message}`),
  ].join('\n');
}
