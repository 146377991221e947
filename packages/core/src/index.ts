/** What the rest of Posthorn may use of the rules: everything that a module exports. */
export * from './address-state.ts';
export * from './audit.ts';
export * from './came-back.ts';
export * from './decide.ts';
export * from './delivery.ts';
export * from './durations.ts';
export * from './errors.ts';
export * from './event.ts';
export * from './explain.ts';
export * from './ids.ts';
export * from './json.ts';
export * from './match.ts';
export * from './notice.ts';
export * from './partition.ts';
export * from './replay.ts';
export * from './subscription.ts';
export * from './time.ts';
