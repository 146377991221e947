/** What came back from failed attempts, as operators see it. */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const BODY = '{"error":"database is read-only"}';
const ended = async (on: World, eventId: string) =>
  await eventually('the end of the delivery', async () => {
    const [delivery] = await on.deliveries(`event_id=${eventId}`);
    return ['succeeded', 'failed'].includes(delivery?.status) && (await on.delivery(delivery.id));
  });
const failingReceiver = (statuses: number[], body = BODY) =>
  ownReceiver((request, response) => {
    const status = isDelivery(request) ? (statuses.shift() ?? 200) : 200;
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': `r${status}` }).end(body);
  });
const response = (status: number, body = BODY) => ({
  headers: { 'content-type': 'application/json', 'x-request-id': `r${status}` },
  body,
  body_truncated: false,
});

describe('what came back', () => {
  it('is shown for the first and the last failed attempt, with the connection also of the success', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '10ms,10ms,10ms' } });
    const to = await failingReceiver([500, 502, 503]);
    await on.subscribe(to.url);
    const { attempts } = await ended(on, (await on.publish(sampleEvent())).body.id);
    expect(attempts).toMatchObject([
      { response: response(500), connection: { ip: '127.0.0.1', error_code: null, certificate: null } },
      { response: null, connection: null },
      { response: response(503), connection: { ip: '127.0.0.1', first_byte_ms: expect.any(Number) } },
      { outcome: 'succeeded', response: null, connection: { ip: '127.0.0.1' } },
    ]);
  });
  it('has the error of a connection that failed', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '10ms' } });
    const to = await failingReceiver([]);
    await on.subscribe(to.url);
    await to.close();
    const { attempts } = await ended(on, (await on.publish(sampleEvent())).body.id);
    expect(attempts[0]).toMatchObject({
      error: 'connection',
      response: null,
      connection: { ip: '127.0.0.1', reused: false, first_byte_ms: null, error_code: 'ECONNREFUSED' },
    });
  });
  it('is the first 1,024 bytes of a body by default', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '10ms' } });
    const to = await failingReceiver([500, 500], 'x'.repeat(5_000));
    await on.subscribe(to.url);
    const { attempts } = await ended(on, (await on.publish(sampleEvent())).body.id);
    expect(attempts[0].response).toEqual({ ...response(500, 'x'.repeat(1_024)), body_truncated: true });
  });
  it('is not kept with RESPONSE_EXCERPT_BYTES=0', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '10ms', RESPONSE_EXCERPT_BYTES: '0' } });
    const to = await failingReceiver([500, 500]);
    await on.subscribe(to.url);
    const { attempts } = await ended(on, (await on.publish(sampleEvent())).body.id);
    expect(attempts).toMatchObject([
      { status_code: 500, response: null, connection: null },
      { status_code: 500, response: null, connection: null },
    ]);
    expect(await on.redis.keys(`${on.prefix}:*responses*`)).toEqual([]);
  });
});

describe('a validation', () => {
  it('shows what came back until the url changes, and lists leave the response out', async () => {
    const on = await ownWorld();
    const to = await ownReceiver((_request, response) => {
      response.writeHead(500, { server: 'sample', 'x-other': 'no' }).end(`${BODY}\x1b[2J`);
    });
    const made = await on.operate('POST', '/v1/subscriptions', {
      url: to.url,
      event_types: 'all',
      environment: 'both',
    });
    expect(made.body.last_validation).toBe(null);
    const path = `/v1/subscriptions/${made.body.id}`;
    const validation = {
      at: expect.any(String),
      outcome: 'acceptable',
      status_code: 500,
      error: 'status',
      response: { headers: { server: 'sample' }, body: `${BODY}\ufffd[2J`, body_truncated: false },
      connection: { ip: '127.0.0.1', reused: false, error_code: null },
    };
    expect((await on.operate('POST', `${path}/validate`)).body).toMatchObject({
      status: 'active',
      last_validation: validation,
    });
    expect((await on.operate('GET', path)).body.last_validation).toMatchObject(validation);
    const [listed] = (await on.operate('GET', '/v1/subscriptions')).body.data;
    expect(listed.last_validation).toMatchObject({ ...validation, response: null });
    await on.operate('POST', `${path}/pause`);
    expect((await on.operate('POST', `${path}/validate`)).body).toMatchObject({
      status: 'paused',
      last_validation: validation,
    });

    await to.close();
    expect((await on.operate('POST', `${path}/validate`)).body.last_validation).toMatchObject({
      outcome: 'unreachable',
      status_code: null,
      error: 'connection',
      response: null,
      connection: { error_code: 'ECONNREFUSED' },
    });
    const changed = await on.operate('PATCH', path, { url: `${to.url}/new` });
    expect(changed.body).toMatchObject({ status: 'awaiting_validation', last_validation: null });
  });
  it('keeps nothing that came back with RESPONSE_EXCERPT_BYTES=0', async () => {
    const on = await ownWorld({ env: { RESPONSE_EXCERPT_BYTES: '0' } });
    const to = await ownReceiver(302);
    const { id } = (
      await on.operate('POST', '/v1/subscriptions', { url: to.url, event_types: 'all', environment: 'both' })
    ).body;
    expect((await on.operate('POST', `/v1/subscriptions/${id}/validate`)).body.last_validation).toMatchObject({
      outcome: 'refused',
      status_code: 302,
      error: 'redirect',
      response: null,
      connection: null,
    });
  });
});
