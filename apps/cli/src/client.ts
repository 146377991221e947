/** Calls the operator API, and says in plain words what went wrong. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the person at the keyboard did wrong or can mend; shown without a stack. */
export class UserError extends Error {
  override name = 'UserError';
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the API answers; what is read of it is in the OpenAPI document
export type Answer = any;
type Query = Record<string, string | number | undefined>;

export interface Client {
  get(path: string, query?: Query): Promise<Answer>;
  post(path: string, body?: unknown): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** The items of a list, page by page, up to `limit`. */
  list(path: string, query: Query, limit: number): Promise<Answer[]>;
}

const PAGE = 250;

/**
 * A client of the console at `POSTHORN_URL` with the token in `POSTHORN_TOKEN`. Without a token, that of `npm start` in this checkout.
 * Tokens are not taken from the command line, which other users of a machine can see.
 */
export function createClient(env: NodeJS.ProcessEnv): Client {
  const url = (env.POSTHORN_URL ?? 'http://127.0.0.1:3001').replace(/\/+$/, '');
  const token = env.POSTHORN_TOKEN ?? tokenOfNpmStart();
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    if (token === undefined) throw new UserError('Set POSTHORN_TOKEN to an operator token.');
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    let response: Response;
    try {
      response = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (cause) {
      throw new UserError(`Can't reach a console at ${url}. Does it run? POSTHORN_URL says where.`, { cause });
    }
    const text = await response.text();
    const answer = parse(text);
    if (response.ok && (answer !== null || response.status === 204)) return answer;
    throw new UserError(describeProblem(response.status, answer));
  };
  return {
    get: (path, query = {}) => call('GET', path + search(query)),
    post: (path, body) => call('POST', path, body),
    patch: (path, body) => call('PATCH', path, body),
    delete: (path) => call('DELETE', path),
    async list(path, query, limit) {
      const items: Answer[] = [];
      let cursor: string | undefined;
      do {
        const page = await call(
          'GET',
          path + search({ ...query, limit: Math.min(PAGE, limit - items.length), cursor }),
        );
        items.push(...page.data);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined && items.length < limit);
      return items;
    },
  };
}

function tokenOfNpmStart(): string | undefined {
  const file = join(import.meta.dirname, '../../../.posthorn/keys.json');
  if (!existsSync(file)) return undefined;
  return (JSON.parse(readFileSync(file, 'utf8')) as { operatorToken?: string }).operatorToken;
}

function search(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

function parse(text: string): Answer {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    // Not the operator API: the status says what there is to say.
    return null;
  }
}

function describeProblem(status: number, problem: Answer): string {
  if (typeof problem?.detail !== 'string') return `The console answered ${status}. Is POSTHORN_URL that of a console?`;
  const fields = (problem.errors ?? []) as { path: string; message: string }[];
  return [problem.detail, ...fields.map(({ path, message }) => `  ${path || 'all'}: ${message}`)].join('\n');
}
