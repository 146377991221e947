/** The trace of an event: from the publisher's call through every attempt, in logs, in the operator API and, if configured, at receivers. */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { callApi } from '../scripts/api-client.ts';
import { ownApps, ownEnv, ownReceiver } from './own.ts';
import type { Process } from './processes.ts';
import { PUBLISHER_KEY, sampleEvent } from './world.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

/** The lines of a process's log with this message. */
function linesOf({ output }: Process, message: string): Record<string, unknown>[] {
  return output.flatMap((line) => (line.includes(`"msg":"${message}"`) ? [JSON.parse(line)] : []));
}

/** Publishes as a traced publisher does. */
async function publishWithin(
  ingestUrl: string,
  traceparent: string,
  path = '/v1/events',
  body: unknown = sampleEvent(),
) {
  return await callApi('POST', `${ingestUrl}${path}`, { token: PUBLISHER_KEY, body, headers: { traceparent } });
}

describe('the trace of a publisher, without a tracer in Posthorn', () => {
  it('is in the log lines of its event and every attempt, and in the operator API, but not at receivers', async () => {
    const apps = await ownApps(ownEnv({ RETRY_DELAYS: '1ms' }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    to.answerWith((_request, response) =>
      response.writeHead(to.requests.filter(isDelivery).length > 1 ? 200 : 500).end(),
    );
    const { body } = await publishWithin(apps.ingestUrl, TRACEPARENT);
    const requests = await to.received(2, isDelivery);
    await eventually('two attempts in the log', () => linesOf(apps.worker, 'delivery.attempted').length === 2);
    for (const line of [...linesOf(apps.ingest, 'event.ingested'), ...linesOf(apps.worker, 'delivery.attempted')]) {
      expect(line).toMatchObject({ event_id: body.id, trace_id: TRACE_ID });
    }
    expect((await apps.operate('GET', `/v1/events/${body.id}`)).body).toMatchObject({ trace_id: TRACE_ID });
    for (const { headers } of requests) expect(headers.traceparent).toBeUndefined();
  });
  it('is sent to receivers with SEND_TRACEPARENT=on', async () => {
    const apps = await ownApps(ownEnv({ SEND_TRACEPARENT: 'on' }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    const batch = { events: [sampleEvent(), sampleEvent()] };
    await publishWithin(apps.ingestUrl, TRACEPARENT, '/v1/events/batch', batch);
    await apps.publish(sampleEvent());
    const headers = (await to.received(3, isDelivery)).map((request) => request.headers.traceparent);
    expect(headers.sort()).toEqual([TRACEPARENT, TRACEPARENT, undefined]);
  });
  it.each(['00-0-0-01', `${TRACEPARENT}, ${TRACEPARENT}`, `${TRACEPARENT}${'-a'.repeat(4_000)}`, '\u00ff', '"}\\'])(
    'is ignored if it is invalid, and the event is accepted: %j',
    async (traceparent) => {
      const apps = await ownApps(ownEnv({ SEND_TRACEPARENT: 'on' }));
      const to = await ownReceiver();
      await apps.subscribe(to.url);
      const { status, body } = await publishWithin(apps.ingestUrl, traceparent);
      expect(status).toBe(202);
      const [request] = await to.received(1, isDelivery);
      expect(request?.headers.traceparent).toBeUndefined();
      expect((await apps.operate('GET', `/v1/events/${body.id}`)).body).toMatchObject({ trace_id: null });
      expect(linesOf(apps.ingest, 'event.ingested')[0]).not.toHaveProperty('trace_id');
    },
  );
});
