/** Erasures during a chaos run: what an operator asks for, and the judge of what is left of a person afterwards. */
import { connectRedis } from '@posthorn/store';
import { storedText } from '../stored-text.ts';
import type { Cast } from './cast.ts';
import type { Published } from './check.ts';
import { callUntilAnswered, listAll } from './operator.ts';

/** Consecutive events that one person has. */
const EVENTS_OF_A_PERSON = 40;

/** An erasure that was accepted. */
export interface RequestedErasure {
  person: string;
  requestedAtMs: number;
}

/** The user of the event with this number. No name is part of another one. */
export function personOf(event: number): string {
  return `person-${String(Math.floor(event / EVENTS_OF_A_PERSON)).padStart(6, '0')}`;
}

/** The persons all of whose events have been published, perhaps not all accepted. */
export function pastPersons(published: ReadonlyMap<string, Published>): string[] {
  return Array.from({ length: Math.floor(published.size / EVENTS_OF_A_PERSON) }, (_, i) =>
    personOf(i * EVENTS_OF_A_PERSON),
  );
}

/**
 * Checks that all erasures have ended, that they erased every event which was accepted before they were requested, and
 * that nothing in Redis names a person who had no event after that.
 */
export async function checkErasures(
  cast: Cast,
  requested: readonly RequestedErasure[],
  published: ReadonlyMap<string, Published>,
  fault: (text: string) => void,
): Promise<Record<string, number>> {
  const erasures = await listAll(cast, '/v1/erasures');
  for (const { id, status } of erasures) if (status !== 'done') fault(`the erasure ${id} is ${status}`);
  const redis = connectRedis({ REDIS_URL: cast.redis.url });
  const stored = await storedText(redis, cast.prefix);
  redis.disconnect();
  let events = 0;
  const forgotten = new Set<string>();
  for (const { person, requestedAtMs } of requested) {
    const own = [...published.values()].filter(({ event }) => userOf(event) === person);
    const due = own.filter(({ acceptedAtMs }) => acceptedAtMs !== undefined && acceptedAtMs < requestedAtMs);
    for (const { event } of due) {
      const { body } = await callUntilAnswered(cast, 'GET', `/v1/events/${event.id}?environment=${event.environment}`);
      if (body.erased_at === null) fault(`${event.id} of ${person} is not erased`);
    }
    events += due.length;
    if (due.length < own.length) continue;
    forgotten.add(person);
    if (stored.includes(person)) fault(`${person} is still in Redis`);
  }
  return {
    'erasures done': erasures.length,
    'events that had to be erased': events,
    'persons forgotten': forgotten.size,
  };
}

function userOf({ data }: Published['event']): unknown {
  return (data as { metadata?: { user_id?: unknown } }).metadata?.user_id;
}
