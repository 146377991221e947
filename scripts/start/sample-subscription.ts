/** Sees to it that the sample receiver is subscribed and validated, through the console's API as any client would. */
import type { DemoState } from './keys.ts';
import type { SampleReceiver } from './sample-receiver.ts';

interface Subscription {
  id: string;
  url: string;
  status: string;
  secret: string;
}

/** Answers the subscription's id and secret: those kept from before where they still hold, new ones otherwise. */
export async function ensureSampleSubscription(
  consoleUrl: string,
  state: DemoState,
  receiver: SampleReceiver,
): Promise<{ subscriptionId: string; secret: string; port: number }> {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; data: Subscription }> => {
    const response = await fetch(`${consoleUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${state.operatorToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const data = (await response.json()) as Subscription;
    if (!response.ok && response.status !== 404) throw new Error(`${method} ${path}: ${JSON.stringify(data)}`);
    return { status: response.status, data };
  };

  let sample = state.sample;
  let present = sample && (await call('GET', `/v1/subscriptions/${sample.subscriptionId}`));
  if (sample === undefined || present === undefined || present.status === 404) {
    present = await call('POST', '/v1/subscriptions', {
      url: receiver.url,
      event_types: 'all',
      environment: 'both',
      description: 'Sample receiver of npm start',
    });
    sample = { subscriptionId: present.data.id, secret: present.data.secret, port: receiver.port };
  } else if (present.data.url !== receiver.url) {
    present = await call('PATCH', `/v1/subscriptions/${sample.subscriptionId}`, { url: receiver.url });
  }
  if (present.data.status === 'paused')
    present = await call('POST', `/v1/subscriptions/${sample.subscriptionId}/resume`);
  if (present.data.status !== 'active') {
    const validated = await call('POST', `/v1/subscriptions/${sample.subscriptionId}/validate`);
    if (validated.data.status !== 'active')
      throw new Error(`The sample receiver was not validated: ${JSON.stringify(validated.data)}`);
  }
  return { ...sample, port: receiver.port };
}
