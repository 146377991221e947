/** Calls the HTTP APIs of Posthorn for `npm start`, tests and benchmarks. */

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: callers read whatever the APIs return
  body: any;
}

interface CallOptions {
  /** The bearer token: an operator's token or a publisher's key. */
  token: string;
  /** A string is sent as it is, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends one request and resolves with the response, whatever its status; a JSON body is parsed. */
export async function callApi(method: string, url: string, options: CallOptions): Promise<Answer> {
  const { token, body, headers, signal } = options;
  const hasBody = body !== undefined;
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(hasBody ? { body: typeof body === 'string' ? body : JSON.stringify(body) } : {}),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** A call of the operator API that resolves with its status and its parsed body. */
export type Operate = (method: string, path: string, body?: unknown) => Promise<Pick<Answer, 'status' | 'body'>>;

interface Subscribed {
  id: string;
  url: string;
  status: string;
  /** The signing secret, which only the creation returns. */
  secret: string;
}

/**
 * Creates a subscription to all types in both environments, unless `fields` say otherwise, and validates it.
 * Throws if it does not become active.
 */
export async function subscribe(operate: Operate, url: string, fields: object = {}): Promise<Subscribed> {
  const body = { url, event_types: 'all', environment: 'both', ...fields };
  const created = await operate('POST', '/v1/subscriptions', body);
  if (created.status !== 201) throw new Error(`Not created: ${JSON.stringify(created.body)}`);
  const validated = await operate('POST', `/v1/subscriptions/${created.body.id}/validate`);
  if (validated.body.status !== 'active') throw new Error(`Not validated: ${JSON.stringify(validated.body)}`);
  return { ...validated.body, secret: created.body.secret };
}
