/** Subscribes the sample receiver of `npm start` and validates it, through the console's API like any client. */
import { callApi, subscribe } from '../api-client.ts';
import type { DemoState } from './keys.ts';
import type { SampleReceiver } from './sample-receiver.ts';

/** Resolves with the subscription's id and secret: those of an earlier run if it still exists, otherwise new ones. */
export async function ensureSampleSubscription(
  consoleUrl: string,
  state: DemoState,
  { url, port }: SampleReceiver,
): Promise<{ subscriptionId: string; secret: string; port: number }> {
  const operate = async (method: string, path: string, body?: unknown) => {
    const answer = await callApi(method, `${consoleUrl}${path}`, { token: state.operatorToken, body });
    if (answer.status >= 400 && answer.status !== 404)
      throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer;
  };
  const path = `/v1/subscriptions/${state.sample?.subscriptionId}`;
  const found = state.sample && (await operate('GET', path));
  if (state.sample === undefined || found?.status === 404) {
    const created = await subscribe(operate, url, { description: 'Sample receiver of npm start' });
    return { subscriptionId: created.id, secret: created.secret, port };
  }
  let current = found?.body;
  if (current.url !== url) current = (await operate('PATCH', path, { url })).body;
  if (current.status === 'paused') current = (await operate('POST', `${path}/resume`)).body;
  if (current.status !== 'active') current = (await operate('POST', `${path}/validate`)).body;
  if (current.status !== 'active') throw new Error(`The sample receiver was not validated: ${JSON.stringify(current)}`);
  return { ...state.sample, port };
}
