/** What a receiver answers and processes, whatever server it is connected to. */
import { describe, expect, it, jest } from '@jest/globals';
import * as core from '@posthorn/core';
import { deliveryHeaders } from '@posthorn/signing';
import {
  createReceiver,
  memoryStore,
  type ReceiverOptions,
  type ReceiverStore,
  SESSION_EVENT_TYPES,
  type WebhookEvent,
} from './index.ts';

const SECRET = 'whsec_of_the_receiver';
const NOW_S = 1_800_000_000;

function eventOf(change: Record<string, unknown> = {}, data: Record<string, unknown> = {}) {
  return {
    id: 'evt_1',
    type: 'session.approved',
    created_at: '2026-01-01T00:00:00.000Z',
    environment: 'production',
    data: { id: 'session-1', status: 'approved', ...data },
    ...change,
  };
}

function receiverWith(change: Partial<ReceiverOptions> = {}) {
  const processed: WebhookEvent[] = [];
  const errors: unknown[] = [];
  const receiver = createReceiver({
    secrets: SECRET,
    onEvent: (event) => void processed.push(event),
    onError: (error) => void errors.push(error),
    now: () => NOW_S * 1000,
    ...change,
  });
  const post = async (text: string, headers: Record<string, string>) => {
    const reply = await receiver.receive({
      method: 'POST',
      header: (name) => headers[name],
      body: new TextEncoder().encode(text),
    });
    return reply;
  };
  const deliver = async (event: object, { secrets = [SECRET], atS = NOW_S } = {}) => {
    const text = JSON.stringify(event);
    const { id = '', type = '' } = event as { id?: string; type?: string };
    const signed = deliveryHeaders({ id: 'dlv_1', eventId: id, eventType: type }, text, secrets, atS);
    const headers = Object.fromEntries(Object.entries(signed).map(([name, value]) => [name.toLowerCase(), value]));
    return await post(text, headers);
  };
  /** Delivers, and processes after the response as adapters do. Returns the status. */
  const send = async (...args: Parameters<typeof deliver>) => {
    const reply = await deliver(...args);
    await reply.process();
    return reply.status;
  };
  return { receiver, processed, errors, post, deliver, send };
}

/** What Posthorn repeats after a second. */
const later = { status: 503, headers: { 'retry-after': '1' } };

describe('a delivery', () => {
  it('is answered before it is processed', async () => {
    const { deliver, processed } = receiverWith();
    const reply = await deliver(eventOf());
    expect([reply.status, processed]).toEqual([200, []]);
    await reply.process();
    expect(processed).toEqual([eventOf()]);
  });
  it('with a wrong, an old or no signature gets 400', async () => {
    const { send, post, processed } = receiverWith();
    expect(await send(eventOf(), { secrets: ['whsec_other'] })).toBe(400);
    for (const atS of [NOW_S - 301, NOW_S + 301]) expect(await send(eventOf(), { atS })).toBe(400);
    const body = JSON.stringify(eventOf());
    for (const header of ['', 't=x,v1=zz', `t=${NOW_S}`, `t=${NOW_S},t=${NOW_S},v1=${'0'.repeat(64)}`]) {
      expect((await post(body, { 'service-signature': header })).status).toBe(400);
    }
    expect(processed).toEqual([]);
  });
  it('is accepted at the edge of the tolerance, with either secret of a rotation', async () => {
    const { send } = receiverWith({ secrets: async () => ['whsec_old', SECRET] });
    expect(await send(eventOf({ id: 'a' }), { atS: NOW_S - 300 })).toBe(200);
    expect(await send(eventOf({ id: 'b' }), { secrets: ['whsec_new', 'whsec_old'] })).toBe(200);
  });
  it('whose signed body is not an event gets 400; an unknown type is accepted', async () => {
    const { send, processed } = receiverWith();
    const broken = ['id', 'type', 'created_at', 'environment'].flatMap((name) =>
      [undefined, '', 1].map((value) => eventOf({ [name]: value })),
    );
    const brokenData = [undefined, '', 1].map((id) => eventOf({}, { id }));
    for (const event of [...broken, ...brokenData, eventOf({ data: null }), eventOf({ data: [] }), { id: 'x' }, []])
      expect([event, await send(event)]).toEqual([event, 400]);
    for (const bytes of [Buffer.from('{'), Buffer.from(JSON.stringify(eventOf({ id: 'é' })), 'latin1')]) {
      const headers = deliveryHeaders({ id: 'dlv_1', eventId: 'x', eventType: 'x' }, bytes, [SECRET], NOW_S);
      const header = (name: string) => (name === 'service-signature' ? headers['Service-Signature'] : undefined);
      const request = { method: 'POST', header, body: Uint8Array.from(bytes) };
      expect((await receiverWith().receiver.receive(request)).body).toBe('The body is not an event.\n');
    }
    expect(processed).toEqual([]);
    expect(await send(eventOf({ type: 'session.of_the_future' }))).toBe(200);
    expect(processed).toHaveLength(1);
  });
  it('is processed once, however often it comes, unless processing failed', async () => {
    let fails = true;
    const { send, processed, errors } = receiverWith({
      onEvent(event) {
        if (fails) throw new Error('database is read-only');
        processed.push(event);
      },
    });
    expect(await send(eventOf())).toBe(200);
    expect(errors).toMatchObject([{ message: 'database is read-only' }]);
    fails = false;
    for (let i = 0; i < 3; i++) expect(await send(eventOf())).toBe(200);
    expect(processed).toHaveLength(1);
    expect(await send(eventOf({ environment: 'sandbox' }))).toBe(200);
    expect(processed).toHaveLength(2);
  });
  it('gets 200 while this process has another one of its event in progress, and 503 while another process has', async () => {
    const store = memoryStore();
    const [one, other] = [receiverWith({ store }), receiverWith({ store })];
    const first = await one.deliver(eventOf());
    expect(await one.deliver(eventOf())).toMatchObject({ status: 200 });
    expect(await other.deliver(eventOf())).toMatchObject(later);
    await first.process();
    expect([await one.send(eventOf()), await other.send(eventOf())]).toEqual([200, 200]);
    expect([one.processed.length, other.processed.length]).toEqual([1, 0]);
  });
  it('gets 503 while another process has its event, also after this one has failed with it', async () => {
    const store = memoryStore();
    const onEvent = () => Promise.reject(new Error('a bug'));
    const [one, other] = [receiverWith({ store, onEvent }), receiverWith({ store })];
    expect(await one.send(eventOf())).toBe(200);
    await other.deliver(eventOf());
    expect(await one.deliver(eventOf())).toMatchObject(later);
  });
  it('gets 503 while too many events are in progress, and while the store is not available', async () => {
    const { deliver, send } = receiverWith({ maxInProgress: 1 });
    const first = await deliver(eventOf());
    expect(await deliver(eventOf({ id: 'evt_2' }))).toMatchObject(later);
    await first.process();
    // One that is known is in progress for a moment only.
    for (const id of ['evt_2', 'evt_2', 'evt_3']) expect(await send(eventOf({ id }))).toBe(200);
    const unavailable: ReceiverStore = { ...memoryStore(), claim: () => Promise.reject(new Error('no connection')) };
    const without = receiverWith({ store: unavailable, maxInProgress: 1 });
    for (let i = 0; i < 2; i++) expect(await without.deliver(eventOf())).toMatchObject(later);
    expect(without.errors).toMatchObject([{ message: 'no connection' }, { message: 'no connection' }]);
  });
  it('gets 503 beyond 1,000 in progress unless told otherwise', async () => {
    const { deliver } = receiverWith();
    const replies = await Promise.all(Array.from({ length: 1_001 }, (_, i) => deliver(eventOf({ id: `evt_${i}` }))));
    // Their signatures are checked at the same time, so any of them may be the last.
    expect(replies.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 1_000 }, () => 200), 503]);
  });
  it.each([
    ['rejects', () => Promise.reject(new Error('no connection'))],
    [
      'throws',
      () => {
        throw new Error('no connection');
      },
    ],
  ])('that fails is reported, and so is a store that %s then', async (_, release) => {
    const onEvent = () => Promise.reject(new Error('no disk'));
    const { receiver, send, errors } = receiverWith({ store: { ...memoryStore(), release }, onEvent });
    expect(await send(eventOf())).toBe(200);
    expect(errors).toMatchObject([{ message: 'no disk' }, { message: 'no connection' }]);
    await receiver.idle();
  });
});

it('is processed once if the store fails after it', async () => {
  const store = { ...memoryStore(), finish: () => Promise.reject(new Error('no connection')) };
  const { send, processed, errors } = receiverWith({ store });
  // Whether it was processed, the store does not know.
  expect([await send(eventOf()), await send(eventOf())]).toEqual([200, 503]);
  expect(processed).toHaveLength(1);
  expect(errors).toMatchObject([{ message: 'no connection' }]);
});

it('answers 503 and goes on if its secrets cannot be read, or are none', async () => {
  let secrets = () => Promise.reject<string[]>(new Error('no vault'));
  const { deliver, send, errors } = receiverWith({ secrets: () => secrets() });
  expect(await deliver(eventOf())).toMatchObject(later);
  const none = [[''], [], [SECRET, undefined], undefined] as string[][];
  for (const secret of none) {
    secrets = () => Promise.resolve(secret);
    expect(await deliver(eventOf())).toMatchObject(later);
  }
  secrets = () => Promise.resolve([SECRET]);
  expect(await send(eventOf())).toBe(200);
  const messages = ['no vault', ...none.map(() => 'A receiver needs a secret.')];
  expect(errors).toMatchObject(messages.map((message) => ({ message })));
});

describe('the order of events', () => {
  const at = (second: number, id: string) => eventOf({ id, created_at: `2026-01-01T00:00:0${second}.000Z` });
  it('does not matter: the newest state of a session wins', async () => {
    const { send, processed } = receiverWith();
    for (const event of [at(2, 'b'), at(1, 'a'), at(2, 'b2'), at(3, 'c')]) expect(await send(event)).toBe(200);
    expect(processed.map(({ id }) => id)).toEqual(['b', 'b2', 'c']);
    expect(await send(eventOf({ id: 'other' }, { id: 'session-2' }))).toBe(200);
    expect(processed.at(-1)).toMatchObject({ id: 'other' });
  });
  it('does not matter for test deliveries, which change no session', async () => {
    const { send, processed } = receiverWith();
    const test = (second: number, id: string) => ({ ...at(second, id), type: 'webhook.test' });
    for (const event of [at(2, 'b'), test(1, 't1'), test(9, 't2'), at(3, 'c')]) await send(event);
    expect(processed.map(({ id }) => id)).toEqual(['b', 't1', 't2', 'c']);
  });
  it('is left alone on request', async () => {
    const { send, processed } = receiverWith({ outdated: 'process' });
    for (const event of [at(2, 'b'), at(1, 'a')]) await send(event);
    expect(processed.map(({ id }) => id)).toEqual(['b', 'a']);
  });
  it('is kept within a session: each event waits for the one before', async () => {
    const gates = new Map(['a', 'b', 'c'].map((id) => [id, Promise.withResolvers<void>()]));
    const begun: string[] = [];
    const { receiver, deliver } = receiverWith({
      async onEvent({ id }) {
        begun.push(id);
        await gates.get(id)?.promise;
      },
    });
    const process = async (id: string, session: string) => (await deliver(eventOf({ id }, { id: session }))).process();
    const [first, second] = [await deliver(eventOf({ id: 'a' })), await deliver(eventOf({ id: 'b' }))];
    const processing = [first.process(), second.process()];
    await process('other', 'session-2');
    expect(begun).toEqual(['a', 'other']);
    gates.get('a')?.resolve();
    await processing[0];
    // The receiver has it before the next one: checking a signature takes a thread an unknown time.
    processing.push((await deliver(eventOf({ id: 'c' }))).process());
    await process('another', 'session-3');
    expect(begun).toEqual(['a', 'other', 'b', 'another']);
    for (const { resolve } of gates.values()) resolve();
    await receiver.idle();
    expect(begun.at(-1)).toBe('c');
    await Promise.all(processing);
  });
});

it('answers the probe of a validation, and refuses other methods and bodies that are too large', async () => {
  const { receiver, post } = receiverWith({ maxBodyBytes: 10 });
  expect((await post('{}', {})).status).toBe(200);
  for (const text of ['{"a":1}', '{} ']) expect((await post(text, {})).status).toBe(400);
  expect((await post('x'.repeat(10), {})).status).toBe(400);
  expect(await post('x'.repeat(11), {})).toMatchObject({ status: 413, headers: { connection: 'close' } });
  const get = await receiver.receive({ method: 'GET', header: () => null, body: new Uint8Array() });
  expect([get.status, get.headers.allow]).toEqual([405, 'POST']);
});

it.each([`${SECRET}\n`, [`${SECRET}\r\n`], () => [`${SECRET}\n`], () => `${SECRET}\n`])(
  'takes a secret with a line break after it (%#)',
  async (secrets) => {
    expect(await receiverWith({ secrets }).send(eventOf())).toBe(200);
  },
);

it('needs a secret and a function, reads at most 1 MiB, and tolerates 300 s unless told otherwise', () => {
  for (const secrets of [[], '', '\n', [''], [SECRET, ''], undefined as unknown as string])
    expect(() => createReceiver({ secrets, onEvent: () => undefined })).toThrow('A receiver needs a secret');
  expect(() => createReceiver({ secrets: SECRET } as never)).toThrow('A receiver needs a function onEvent');
  expect(receiverWith().receiver.maxBodyBytes).toBe(1_048_576);
});

it.each(['toleranceS', 'maxBodyBytes', 'maxInProgress'])('refuses an option %s that is no number', (name) => {
  const options = { secrets: SECRET, onEvent: () => undefined, [name]: Number.NaN };
  expect(() => createReceiver(options)).toThrow(`The option ${name} of a receiver must be a number.`);
});

it('processes an event whose order the store cannot tell any more, since its response has been sent', async () => {
  const failure = new Error('Redis is away');
  const store: ReceiverStore = { ...memoryStore(), advance: () => Promise.reject(failure) };
  const { send, processed, errors } = receiverWith({ store });
  expect(await send(eventOf())).toBe(200);
  expect([processed.length, errors]).toEqual([1, [failure]]);
});

it.each([
  [
    'throws',
    () => {
      throw new Error('no alert');
    },
  ],
  ['rejects', () => Promise.reject(new Error('no alert'))],
])('goes on if onError %s, and writes both errors to the console', async (_, onError) => {
  const written = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const failure = new Error('no disk');
  const onEvent = jest.fn<() => Promise<void>>().mockRejectedValueOnce(failure).mockResolvedValue();
  const { send } = receiverWith({ onEvent, onError });
  expect(await send(eventOf())).toBe(200);
  expect(await send(eventOf())).toBe(200);
  expect(onEvent).toHaveBeenCalledTimes(2);
  expect(written.mock.calls).toEqual([['Posthorn receiver:', failure, 'onError threw', new Error('no alert')]]);
  written.mockRestore();
});

it('writes errors to the console unless told otherwise', async () => {
  const written = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const failure = new Error('no disk');
  const { send } = receiverWith({ onEvent: () => Promise.reject(failure), onError: undefined as never });
  expect(await send(eventOf())).toBe(200);
  expect(written.mock.calls).toEqual([['Posthorn receiver:', failure]]);
  written.mockRestore();
});

it('knows the event types that Posthorn has: the package has a copy, since it depends on nothing', () => {
  expect(SESSION_EVENT_TYPES).toEqual(core.SESSION_EVENT_TYPES);
});
