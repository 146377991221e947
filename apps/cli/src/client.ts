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
 * A client of the console at `POSTHORN_URL` with the token in `POSTHORN_TOKEN`. Without these settings, of the `npm start` that runs from this
 * checkout; its token goes to no other console. Tokens are not taken from the command line, which other users of a machine can see.
 */
export function createClient(env: NodeJS.ProcessEnv): Client {
  const running = env.POSTHORN_URL === undefined || env.POSTHORN_TOKEN === undefined ? findNpmStart(env) : undefined;
  const url = (env.POSTHORN_URL ?? running?.url ?? 'http://127.0.0.1:3001').replace(/\/+$/, '');
  const token = env.POSTHORN_TOKEN ?? (url === running?.url ? running.token : undefined);
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    if (token === undefined) throw new UserError(noToken(env));
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
      const source =
        env.POSTHORN_URL === undefined && running ? 'npm start wrote this address' : 'POSTHORN_URL says where';
      throw new UserError(`Can't reach a console at ${url}. Does it run? (${source}.)`, { cause });
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

/** Where the console of the `npm start` of this checkout is, and its token; undefined where none runs. */
function findNpmStart(env: NodeJS.ProcessEnv): { url: string; token: string } | undefined {
  const dir = env.POSTHORN_DIR ?? join(import.meta.dirname, '../../../.posthorn');
  const file = join(dir, 'running.json');
  if (!existsSync(file)) return undefined;
  try {
    const { pid, urls, keysFile } = readJson(file) as { pid: number; urls?: { console: string }; keysFile?: string };
    if (urls === undefined || keysFile === undefined || !isAlive(pid)) return undefined;
    const { operatorToken } = readJson(keysFile) as { operatorToken: string };
    return { url: urls.console, token: operatorToken };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UserError(`Can't read what npm start wrote: ${why}. Set POSTHORN_URL and POSTHORN_TOKEN.`, { cause });
  }
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** Whether a process lives, even one of another user: a run that was killed leaves its file behind. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function noToken(env: NodeJS.ProcessEnv): string {
  if (env.POSTHORN_URL !== undefined) return 'Set POSTHORN_TOKEN to an operator token of that console.';
  return 'No npm start runs from this checkout. Start it, or set POSTHORN_URL and POSTHORN_TOKEN to a console and an operator token.';
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
