/** The signature doctor: says why a receiver refuses a signature. */
import { EVENT_ID, eventBody } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import { signatureCheckRequestSchema, signatureCheckSchema, subscriptionParamsSchema } from '@posthorn/operator-api';
import { diagnoseSignature } from '@posthorn/signing';
import { findEvents, type Store } from '@posthorn/store';
import { findSubscription } from '../change-subscription.ts';
import type { ConsoleContext } from '../context.ts';
import { instant } from '../instant.ts';
import { openSecret } from '../open-secret.ts';

/** An event's body as a string in JSON: each of its quotes takes two bytes. */
const MAX_REQUEST_BYTES = 768 * 1024;
/** At most this many ids in a body are looked up as that of the event. */
const MAX_IDS = 5;
/** The last second of the year 9999: a later one has no ISO 8601 form of four digits. */
const MAX_INSTANT_S = 253_402_300_799;

export function signatureRoutes(api: Api, context: ConsoleContext): void {
  const { store, secretBox, clock } = context;
  api.tagged('Subscriptions').post('/v1/subscriptions/{id}/check-signature', {
    summary: 'Say why a receiver refuses a signature',
    description:
      'Compares the body and the header that a receiver saw with what was sent: its secrets, the clock, and changes to the body. Finds the event by the `id` in the body, or by `event_id`. Sends and stores nothing.',
    params: subscriptionParamsSchema,
    body: signatureCheckRequestSchema,
    maxBodyBytes: MAX_REQUEST_BYTES,
    responses: { 200: { description: 'What is wrong', schema: signatureCheckSchema } },
    problems: ['conflict'],
    async handle({ params: { id }, body: seen }) {
      const { sealedSecret, previousSealedSecret } = await findSubscription(context, id);
      const { signedAtS, clockOffS, ...diagnosis } = diagnoseSignature({
        header: seen.header,
        body: seen.body,
        secret: openSecret(secretBox, sealedSecret, id),
        previousSecret: previousSealedSecret === null ? undefined : openSecret(secretBox, previousSealedSecret, id),
        sent: await bodiesOf(store, seen.event_id === undefined ? eventIdsIn(seen.body) : [seen.event_id]),
        receivedAtS: seen.received_at === undefined ? undefined : Math.floor(seen.received_at / 1000),
        nowS: Math.floor(clock.now() / 1000),
      });
      const isReal = signedAtS !== null && signedAtS <= MAX_INSTANT_S;
      return { ...diagnosis, signed_at: isReal ? instant(signedAtS * 1000) : null, clock_off_s: clockOffS };
    },
  });
}

/** Resolves with the bodies of the events with these ids, of both environments. */
async function bodiesOf(store: Store, eventIds: readonly string[]): Promise<string[]> {
  const found = await Promise.all(eventIds.map((id) => findEvents(store, id)));
  return found.flat().flatMap(({ event, erasedAtMs }) => (erasedAtMs === undefined ? [eventBody(event)] : []));
}

/**
 * Returns the values of the first fields `id` in a body, even if it is not JSON any more: the event's may follow one of
 * its `data`.
 */
function eventIdsIn(body: string): string[] {
  const ids = new Set<string>();
  for (const [, id = ''] of body.matchAll(/"id\\?"\s{0,8}:\s{0,8}\\?"([^"\\]{1,128})\\?"/g)) {
    if (EVENT_ID.test(id)) ids.add(id);
    if (ids.size === MAX_IDS) break;
  }
  return [...ids];
}
