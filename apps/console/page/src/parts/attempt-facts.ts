/** What is known of an attempt as names and texts, and which of them differ between two attempts. */
import type { DeliveryWithAttempts } from '@posthorn/operator-api';
import { durationText } from './numbers.ts';

export type Attempt = DeliveryWithAttempts['attempts'][number];
/** What came back from an attempt or a validation. */
export type CameBack = Pick<Attempt, 'response' | 'connection'>;

/** A value of one attempt: the text that is shown, and how long it took if it is a duration. */
interface Value {
  text: string;
  ms?: number;
}

interface ComparedFact {
  name: string;
  first: string;
  second: string;
  isChanged: boolean;
}

/** Durations always differ a little: a change is one of more than this, and of more than half. */
const MIN_CHANGE_MS = 50;

/** Returns the facts of what came back except the body, without those that are not known. */
export function cameBackFacts({ response, connection }: CameBack): Record<string, string> {
  return Object.fromEntries(
    Object.entries(cameBackValues({ response, connection })).map(([name, { text }]) => [name, text]),
  );
}

/** Returns every fact that one of two attempts has, except the bodies, with the values of both. */
export function compareAttempts(first: Attempt, second: Attempt): ComparedFact[] {
  const [a, b] = [attemptValues(first), attemptValues(second)];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => ({
    name,
    first: a[name]?.text ?? '–',
    second: b[name]?.text ?? '–',
    isChanged: isChanged(a[name], b[name]),
  }));
}

/** Whether anything of what came back is known. */
export function isKept({ response, connection }: CameBack): boolean {
  return response !== null || connection !== null;
}

function isChanged(a: Value | undefined, b: Value | undefined): boolean {
  if (a?.ms === undefined || b?.ms === undefined) return a?.text !== b?.text;
  const change = Math.abs(a.ms - b.ms);
  return change > MIN_CHANGE_MS && change > Math.max(a.ms, b.ms) / 2;
}

function attemptValues(attempt: Attempt): Record<string, Value> {
  const { status_code: status, duration_ms: took } = attempt;
  return {
    Outcome: { text: attempt.outcome === 'succeeded' ? 'Succeeded' : 'Failed' },
    ...(status !== null && { Status: { text: String(status) } }),
    Took: duration(took),
    ...cameBackValues(attempt),
  };
}

function cameBackValues({ response, connection }: CameBack): Record<string, Value> {
  const values: Record<string, Value> = {};
  const add = (name: string, text: string | null | undefined) => {
    if (text) values[name] = { text };
  };
  const addDuration = (name: string, ms: number | null | undefined) => {
    if (ms != null) values[name] = duration(ms);
  };
  add('Error', connection?.error_code);
  add('IP', connection?.ip);
  if (connection?.ip) add('Connection', connection.reused ? 'Opened by an earlier request' : 'New');
  addDuration('DNS', connection?.dns_ms);
  addDuration('Connect', connection?.connect_ms);
  addDuration('TLS', connection?.tls_ms);
  addDuration('First byte', connection?.first_byte_ms);
  add('Certificate', connection?.certificate?.subject);
  add('Certificate issuer', connection?.certificate?.issuer);
  add('Certificate valid until', connection?.certificate?.valid_to.slice(0, 'YYYY-MM-DD'.length));
  for (const [name, value] of Object.entries(response?.headers ?? {})) add(name, value);
  return values;
}

const duration = (ms: number): Value => ({ text: durationText(ms), ms });
