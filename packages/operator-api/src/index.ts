/** The operator API (interface 4): what it accepts and returns, for the console, its page and the command line. */
export * from './requests/deliveries.ts';
export * from './requests/erasures.ts';
export * from './requests/events.ts';
export { MAX_PAGE_LIMIT } from './requests/fields.ts';
export * from './requests/operators.ts';
export * from './requests/replays.ts';
export * from './requests/subscriptions.ts';
export * from './responses/deliveries.ts';
export * from './responses/erasures.ts';
export * from './responses/events.ts';
export { type Page, pageOf } from './responses/fields.ts';
export * from './responses/operators.ts';
export * from './responses/overview.ts';
export * from './responses/replays.ts';
export * from './responses/subscriptions.ts';
