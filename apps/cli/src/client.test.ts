/** What the client makes of responses, of those that never come, and of settings that lead nowhere. */
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { type Receiver, startReceiver, testCertificate } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { z } from 'zod';
import { createClient } from './client.ts';
import { readVersion } from './version.ts';

const MAYBE_DONE = 'The call may have been carried out: look before you repeat it.';
const itemSchema = z.strictObject({ id: z.string() });

/** The console. */
let to: Receiver;
beforeEach(async () => {
  to = await ownReceiver();
});
async function ownReceiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const receiver = await startReceiver(...args);
  atEnd(() => receiver.close());
  return receiver;
}

/** Resolves with the message of a read and of a change, and with 'no error' for one that succeeds. */
async function said(env: Record<string, string> = {}, id = 'sub_1'): Promise<[read: string, change: string]> {
  const client = createClient({ POSTHORN_URL: to.url, POSTHORN_TOKEN: 'token', ...env });
  const messageOf = (call: Promise<unknown>) =>
    call.then(
      () => 'no error',
      ({ message }: Error) => message,
    );
  const path = `/v1/subscriptions/${id}`;
  return [await messageOf(client.get(itemSchema, path)), await messageOf(client.post(itemSchema, `${path}/pause`))];
}
const json = (content: unknown) => (_request: unknown, response: ServerResponse) =>
  void response.end(JSON.stringify(content));

describe('a call', () => {
  it('ignores fields that a later console has added', async () => {
    to.answerWith(json({ id: 'sub_1', added_later: {} }));
    expect(await said()).toEqual(['no error', 'no error']);
  });

  it.each(['<h1>Sign in</h1>', '{"id":', '', '{"id":1}'])('takes no %j for the response of a console', async (text) => {
    to.answerWith((_request, response) => void response.end(text));
    const [read, change] = await said();
    const question = `Is POSTHORN_URL the address of a console? Or is it of an earlier release than this command line, ${readVersion()}?`;
    const where = text === '{"id":1}' ? ' at id' : '';
    expect(read).toBe(
      `The response is not that of a console${where}. ${question} (GET ${to.url}/v1/subscriptions/sub_1)`,
    );
    expect(change).toContain(`${question} ${MAYBE_DONE} (POST `);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ['the response is lost', (response) => void response.destroy()],
    [
      'the response breaks off',
      (response) => {
        response.writeHead(200).write('{"id":');
        setImmediate(() => response.destroy());
      },
    ],
    ['the response is no HTTP', ({ socket }) => void socket?.end('nonsense\r\n\r\n')],
    ['a proxy gave up', (response) => void response.writeHead(504).end()],
  ])('that changes something may have been carried out if %s', async (_what, answer) => {
    to.answerWith((_request, response) => answer(response));
    const [read, change] = await said();
    expect(read).not.toContain(MAYBE_DONE);
    expect(change).toContain(MAYBE_DONE);
  });

  it.each([
    ['overloaded', false],
    ['not_changed', false],
    ['unavailable', false],
    ['of_a_gateway', true],
    [undefined, true],
  ])('with a 503 of code %s leaves it to the console to say what became of a change', async (code, says) => {
    to.answerWith((_request, response) => response.writeHead(503).end(JSON.stringify({ detail: 'Down.', code })));
    const [, change] = await said();
    expect(change).toBe(`Down. ${says ? `${MAYBE_DONE} ` : ''}(POST ${to.url}/v1/subscriptions/sub_1/pause)`);
  });

  it('waits for the rate limit, up to nine times in a row, and not for a longer refusal', async () => {
    const refuse = (response: ServerResponse, retryAfter: string) =>
      response.writeHead(429, { 'retry-after': retryAfter }).end('{"detail":"Too many calls."}');
    to.answerWith((_request, response) => {
      if (to.requests.length % 10 > 0) refuse(response, '0');
      else response.end('{"id":"sub_1"}');
    });
    expect(await said()).toEqual(['no error', 'no error']);
    expect(to.requests).toHaveLength(20);
    for (const [retryAfter, calls] of [
      ['0', 10],
      ['60', 1],
    ] as const) {
      to.answerWith((_request, response) => refuse(response, retryAfter));
      const before = to.requests.length;
      for (const message of await said()) expect(message).toContain('Too many calls.');
      expect(to.requests.length - before).toBe(2 * calls);
    }
  });

  it('follows no redirect: without the token, or as a GET, it would be another call', async () => {
    to.answerWith((_request, response) => response.writeHead(301, { location: 'https://x.example/v1' }).end());
    for (const message of await said()) expect(message).toContain('redirects to https://x.example/v1. ');
    expect(to.requests).toHaveLength(2);
  });

  it.each([
    ['', 'An id is empty.'],
    ['.', 'An id is ".".'],
    ['..', 'An id is "..".'],
  ])('with the id %j is not made: it would be one about all, or about another path', async (id, message) => {
    for (const one of await said({}, id)) expect(one).toContain(message);
    expect(to.requests).toEqual([]);
  });
});

describe('a console', () => {
  it('that can not be reached is named, and why', async () => {
    await to.close();
    for (const message of await said({ POSTHORN_URL: `${to.url} \r` }))
      expect(message).toMatch(/^Cannot reach a console at \S+: .*ECONNREFUSED.*Is it running\?/);
    const tls = await ownReceiver(200, testCertificate);
    expect((await said({ POSTHORN_URL: tls.url }))[0]).toContain('certificate');
  });

  it.each([
    [{ POSTHORN_URL: 'http://ada:hidden@127.0.0.1' }, 'POSTHORN_URL must not carry a user or password.'],
    [{ POSTHORN_URL: 'localhost:1' }, 'POSTHORN_URL must begin with http:// or https://. It is localhost:1.'],
    [{ POSTHORN_URL: '' }, 'POSTHORN_URL is empty: set it, or unset it.'],
    [{ POSTHORN_TOKEN: ' ' }, 'POSTHORN_TOKEN is empty: set it, or unset it.'],
    [{ POSTHORN_TOKEN: 'token\u201d' }, 'POSTHORN_TOKEN has characters that no operator token has: copy it again.'],
  ])('is not asked with %j', async (env, message) => {
    expect(await said(env)).toEqual([message, message]);
    expect(to.requests).toEqual([]);
  });
});
