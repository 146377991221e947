/** Options that several commands have. */
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { SUBSCRIPTION_ENVIRONMENTS } from '@posthorn/core';

export const limitOption = () =>
  new Option('--limit <number>', 'maximum number of items').default(50).argParser(wholeNumber);
export const typesOption = () =>
  new Option('--types <types>', 'event types separated by commas, or all').argParser(eventTypes);
export const subscriptionEnvironmentOption = () =>
  new Option('--environment <environment>').choices(SUBSCRIPTION_ENVIRONMENTS);

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 999999.');
  return Number(text);
}

function eventTypes(text: string): 'all' | string[] {
  return text === 'all' ? text : text.split(',').map((type) => type.trim());
}
