/** Options that several commands have. */
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { ENVIRONMENTS, EVENT_TYPES, instantSchema, parseDurationMs, SUBSCRIPTION_ENVIRONMENTS } from '@posthorn/core';

export const limitOption = () =>
  new Option('--limit <number>', 'maximum number of items').default(50).argParser(wholeNumber);
export const typesOption = () =>
  new Option('--types <types>', 'event types separated by commas, or all').argParser(eventTypes);
export const typeOption = (types: readonly string[] = EVENT_TYPES) =>
  new Option('--type <type>', 'event type').choices(types);
export const environmentOption = () => new Option('--environment <environment>').choices(ENVIRONMENTS);
export const subscriptionEnvironmentOption = () =>
  new Option('--environment <environment>').choices(SUBSCRIPTION_ENVIRONMENTS);

/** Options for a period: `--from` and `--to`, each an instant or a duration before now. `of` says of what. */
export const fromOption = (of: string) =>
  new Option('--from <time>', `${of} at or after: ISO 8601, or a duration before now such as 1h`).argParser(instantOf);
export const toOption = (of: string) =>
  new Option('--to <time>', `${of} at or before: ISO 8601, or a duration before now such as 1h`).argParser(instantOf);

export function instantOf(text: string): string {
  const agoMs = parseDurationMs(text);
  if (agoMs !== undefined) return new Date(Date.now() - agoMs).toISOString();
  if (instantSchema.safeParse(text).success) return text;
  throw new InvalidArgumentError(
    'Expected an instant such as 2026-01-31T12:00:00Z, or a duration such as 30m, 1h or 2d.',
  );
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 999999.');
  return Number(text);
}

function eventTypes(text: string): 'all' | string[] {
  return text === 'all' ? text : text.split(',').map((type) => type.trim());
}
