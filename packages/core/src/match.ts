/** Which subscriptions an event goes to, expressed by topics, so that two sets in Redis give the result. */
import { ENVIRONMENTS, type Environment, type EventType } from './event.ts';
import type { Subscription } from './subscription.ts';

/**
 * The topics a subscription listens on: one per environment, times `all` or each chosen type (specification 6, rules 1
 * and 2). A subscription matches an event exactly when `topicsOfSubscription` and `topicsOfEvent` share a topic.
 */
export function topicsOfSubscription(subscription: Pick<Subscription, 'eventTypes' | 'environment'>): string[] {
  const environments = subscription.environment === 'both' ? ENVIRONMENTS : [subscription.environment];
  const types = subscription.eventTypes === 'all' ? ['all'] : subscription.eventTypes;
  return environments.flatMap((environment) => types.map((type) => `${environment}:${type}`));
}

/** The two topics whose listeners an event goes to. */
export function topicsOfEvent(event: { type: EventType; environment: Environment }): [string, string] {
  return [`${event.environment}:all`, `${event.environment}:${event.type}`];
}
