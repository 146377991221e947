/**
 * The command `listen`: forwards events of the sandbox to a receiver under development, signed as workers sign them.
 */
import { styleText } from 'node:util';
import { type CommandUnknownOpts, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import {
  deliveryId,
  errorOfStatus,
  eventRef,
  newSubscriptionId,
  OWN_SECRET,
  SESSION_EVENT_TYPES,
} from '@posthorn/core';
import { type ListenedEvent, listenedEventSchema } from '@posthorn/operator-api';
import { deliveryHeaders, newSigningSecret } from '@posthorn/signing';
import type { Client } from './client.ts';
import { followEvents } from './follow-events.ts';
import { typeOption } from './options.ts';
import { harmless, jsonText, type Printer } from './print.ts';
import { readVersion } from './version.ts';

/** As long as a worker waits by default. */
const TIMEOUT_MS = 8_000;
/** As many as a worker sends to one address at once by default. */
const MAX_IN_FLIGHT = 10;

interface Target {
  url: string;
  secret: string;
  /** A new id in place of a subscription's, so that delivery ids differ from those of other listeners. */
  subscriptionId: string;
}

/** What the receiver did with an event: its status, or why there is none. */
interface Forwarded {
  event_id: string;
  event_type: string;
  delivery_id: string;
  status_code: number | null;
  error: string | null;
  duration_ms: number;
}

export function addListenCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('listen')
    .description('forward new events of the sandbox to a receiver under development, until Ctrl-C')
    .addOption(
      new Option('--forward <address>', 'where to: localhost:3000, localhost:3000/webhooks, or a URL')
        .argParser(addressOf)
        .makeOptionMandatory(),
    )
    .addOption(typeOption(SESSION_EVENT_TYPES))
    .addOption(
      new Option('--secret <secret>', 'the signing secret; without it, a new one is printed')
        .env('POSTHORN_LISTEN_SECRET')
        .argParser(secretOf),
    )
    .action(async ({ forward: url, type, secret }) => {
      const target = { url, secret: secret ?? newSigningSecret(), subscriptionId: newSubscriptionId() };
      const inFlight = new Set<Promise<void>>();
      let isFirst = true;
      const begin = () => {
        if (isFirst) process.stderr.write(introduction(target, secret !== undefined));
        isFirst = false;
      };
      for await (const { name, data } of followEvents(client, '/v1/listen', { event_type: type }, begin)) {
        if (name !== 'event') continue;
        if (inFlight.size >= MAX_IN_FLIGHT) await Promise.race(inFlight);
        const sending = forward(target, listenedEventSchema.loose().parse(data)).then((result) => {
          process.stdout.write(`${print.isJson() ? jsonText(result, 0) : lineOf(result)}\n`);
          inFlight.delete(sending);
        });
        inFlight.add(sending);
      }
    });
}

function introduction({ url, secret }: Target, isOwn: boolean): string {
  const which = isOwn ? 'your secret' : `the secret ${secret}`;
  return `Forwarding new events of the sandbox to ${url}\nSigned with ${which}. Attempts are not repeated, and nothing is stored.\n`;
}

/** Sends one event once. Never throws: a failure is a result. */
async function forward({ url, secret, subscriptionId }: Target, event: ListenedEvent): Promise<Forwarded> {
  const { id: eventId, type: eventType, body } = event;
  const id = deliveryId(eventRef({ id: eventId, environment: 'sandbox' }), subscriptionId);
  const signed = deliveryHeaders({ id, eventId, eventType }, body, [secret], Math.floor(Date.now() / 1_000));
  const headers = { ...signed, 'User-Agent': `Posthorn/${readVersion()}` };
  const startedMs = performance.now();
  const result = { status_code: null as number | null, error: null as string | null };
  try {
    const options = { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) };
    const response = await fetch(url, { ...options, redirect: 'manual' });
    await response.body?.cancel();
    result.status_code = response.status;
    result.error = errorOfStatus(response.status);
  } catch (error) {
    result.error = reasonOf(error);
  }
  const duration_ms = Math.round(performance.now() - startedMs);
  return { event_id: eventId, event_type: eventType, delivery_id: id, ...result, duration_ms };
}

/** Returns for example `ECONNREFUSED` or `timeout`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'timeout';
  const { cause } = error;
  return cause instanceof Error ? String((cause as NodeJS.ErrnoException).code ?? cause.message) : error.message;
}

function lineOf({ event_id, event_type, status_code, error, duration_ms }: Forwarded): string {
  const result = `${error === null ? 'ok' : 'failed'} ${status_code ?? error ?? ''}`;
  const mark = styleText(error === null ? 'green' : 'red', harmless(result));
  return `${new Date().toISOString()}  ${mark}  ${duration_ms} ms  ${event_type}  ${event_id}`;
}

function addressOf(text: string): string {
  const address = /^\d{1,5}$/.test(text) ? `localhost:${text}` : text;
  const url = URL.parse(address.includes('://') ? address : `http://${address}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new InvalidArgumentError('Expected an address such as localhost:3000 or http://localhost:3000/webhooks.');
  return url.href;
}

function secretOf(text: string): string {
  if (OWN_SECRET.test(text)) return text;
  throw new InvalidArgumentError('Expected 16 to 256 printable ASCII characters without spaces.');
}
