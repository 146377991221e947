/** Calls of an operator who does not give up: a failed call is repeated, at whichever process responds. */
import { setTimeout as wait } from 'node:timers/promises';
import { type Answer, callApi } from '../../scripts/api-client.ts';
import { OPERATOR_TOKEN } from '../world.ts';
import type { Cast } from './cast.ts';

/** How long a call may take, in milliseconds. */
export const CALL_LIMIT_MS = 15_000;

type CallAnswer = Pick<Answer, 'status' | 'body'>;

/** Calls a console once, another one at each attempt; resolves with undefined if there was no response. */
export async function callOnce(
  cast: Cast,
  method: string,
  path: string,
  body?: unknown,
  attempt = 0,
): Promise<CallAnswer | undefined> {
  const members = cast.members.filter(({ app }) => app === 'console');
  const { url } = members[attempt % members.length]!;
  try {
    return await callApi(method, url + path, {
      token: OPERATOR_TOKEN,
      body,
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    });
  } catch {
    // Down, disconnected, or stopped halfway: the caller tries again.
    return undefined;
  }
}

/** Calls until the response is not a 5xx. */
export async function callUntilAnswered(cast: Cast, method: string, path: string, body?: unknown): Promise<CallAnswer> {
  for (let attempt = 0; ; attempt++) {
    const answer = await callOnce(cast, method, path, body, attempt);
    if (answer && answer.status < 500) return answer;
    await wait(200);
  }
}

/** Reads all items of a list. */
export async function listAll(cast: Cast, path: string): Promise<CallAnswer['body'][]> {
  const items: CallAnswer['body'][] = [];
  for (let cursor = ''; ; ) {
    const { body } = await callUntilAnswered(cast, 'GET', `${path}?limit=250${cursor}`);
    items.push(...body.data);
    if (body.next_cursor === null) return items;
    cursor = `&cursor=${body.next_cursor}`;
  }
}
