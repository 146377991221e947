/** Decodes an attempt of the live tail. */
import type { TailedAttempt } from '@posthorn/operator-api';
import { decodeTailEntry } from '@posthorn/store';
import { instant } from './instant.ts';

/** An attempt and its JSON, which all listeners share. */
export interface TailItem {
  attempt: TailedAttempt;
  json: string;
}

export function decodeTailItem(text: string): TailItem {
  const entry = decodeTailEntry(text);
  const attempt: TailedAttempt = {
    at: instant(entry.startedAtMs),
    delivery_id: entry.deliveryId,
    event_id: entry.eventId,
    event_type: entry.eventType,
    environment: entry.environment,
    subscription_id: entry.subscriptionId,
    attempt: entry.number,
    outcome: entry.error === null ? 'succeeded' : 'failed',
    status_code: entry.statusCode,
    error: entry.error,
    duration_ms: entry.durationMs,
    delivery_status: entry.status,
  };
  return { attempt, json: JSON.stringify(attempt) };
}
