/** Follows work in the background that takes time. */
import { setTimeout as wait } from 'node:timers/promises';
import { type DeliveryWithAttempts, deliveryWithAttemptsSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { UserError } from './user-error.ts';

/** How often the console is asked about it. */
export const POLL_INTERVAL_MS = 250;
/** Longer than the time limit of an attempt. */
const ATTEMPT_WAIT_MS = 12_000;

/** Says that work in the background goes on, and what shows it. */
export const goesOn = (id: string): string => `${id} goes on without this command: see "posthorn show ${id}".`;

/** Adds to an error of a call that follows work in the background that the work goes on, and what shows it. */
export async function following<T>(id: string, call: Promise<T>): Promise<T> {
  return await call.catch((cause: unknown) => {
    if (!(cause instanceof UserError)) throw cause;
    throw new UserError(`${cause.message}\n${goesOn(id)}`, { cause });
  });
}

/** Whether a call that failed may succeed a moment later. A proxy answers with 502 or 504 while its console is away. */
export function mayPass({ status }: UserError): boolean {
  return status === undefined || status === 429 || status >= 500;
}

/** Waits for some seconds until a delivery has had an attempt or is held. Returns its latest state. */
export async function awaitFirstAttempt(client: Client, id: string): Promise<DeliveryWithAttempts> {
  const endsAtMs = performance.now() + ATTEMPT_WAIT_MS;
  for (;;) {
    const delivery = await following(id, client.get(deliveryWithAttemptsSchema, `/v1/deliveries/${id}`));
    if (delivery.status !== 'pending' || performance.now() > endsAtMs) return delivery;
    await wait(POLL_INTERVAL_MS);
  }
}
