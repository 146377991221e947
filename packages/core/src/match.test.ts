/** Which subscriptions an event goes to. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  ENVIRONMENTS,
  SESSION_EVENT_TYPES,
  SUBSCRIPTION_ENVIRONMENTS,
  type Subscription,
  topicsOfEvent,
  topicsOfSubscription,
} from './index.ts';

const subscriptionChoice: fc.Arbitrary<Pick<Subscription, 'eventTypes' | 'environment'>> = fc.record({
  eventTypes: fc.oneof(fc.constant('all' as const), fc.subarray([...SESSION_EVENT_TYPES], { minLength: 1 })),
  environment: fc.constantFrom(...SUBSCRIPTION_ENVIRONMENTS),
});

describe('match', () => {
  it('sends an event to a subscription exactly when both type and environment match', () => {
    const event = fc.record({
      type: fc.constantFrom(...SESSION_EVENT_TYPES),
      environment: fc.constantFrom(...ENVIRONMENTS),
    });
    fc.assert(
      fc.property(subscriptionChoice, event, (subscription, { type, environment }) => {
        const topics = topicsOfSubscription(subscription);
        const matches = topicsOfEvent({ type, environment }).some((topic) => topics.includes(topic));
        const typeFits = subscription.eventTypes === 'all' || subscription.eventTypes.includes(type);
        const environmentFits = subscription.environment === 'both' || subscription.environment === environment;
        expect(matches).toBe(typeFits && environmentFits);
      }),
    );
  });
});
