/** Routes that resume the address of one subscription (specification 3.2, interface 4), or of many at once. */
import { AppError, nextAddressState } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import {
  type BulkResumeResult,
  bulkResumeResultSchema,
  bulkResumeSchema,
  type ResumeResult,
} from '@posthorn/operator-api';
import { loadSubscriptions, type StoredSubscription } from '@posthorn/store';
import { allParts } from '../all-parts.ts';
import { change, subscriptionRoute } from '../change-subscription.ts';
import type { ConsoleContext } from '../context.ts';
import { serializeSubscription } from '../serialize.ts';

export function resumeRoutes(api: Api, context: ConsoleContext): void {
  const subscriptions = api.tagged('Subscriptions');

  subscriptions.post('/v1/subscriptions/{id}/resume', {
    ...subscriptionRoute,
    problems: ['conflict'],
    summary: 'Resume it: one held delivery is sent first, the others follow if it succeeds',
    description:
      'While that delivery is on its way, `resuming` is true and all others stay held. If it succeeds, the consecutive failures are reset and the held deliveries are sent. If its attempt fails, the address is paused again, and `last_resume` says so. If nothing is held, the address is active at once.',
    async handle({ params: { id }, caller }) {
      const { subscription } = await resume(context, id, caller);
      return await serializeSubscription(context, subscription);
    },
  });

  subscriptions.post('/v1/subscriptions/resume', {
    summary: 'Resume many addresses, each like a single one',
    description:
      'Takes either `subscription_ids`, or `status_reason` and, if wanted, the filters of the list of subscriptions. With `status_reason`, it looks at up to `limit` paused addresses, the newest first; to go on, repeat it with `next_cursor`. An address that is not paused is left as it is, so a call may be repeated. If Redis refuses a part, the response is 503, and says how many addresses were resumed.',
    body: bulkResumeSchema,
    responses: {
      200: { description: 'What became of each address', schema: bulkResumeResultSchema },
    },
    async handle({ body, caller }) {
      const { subscription_ids: ids, status_reason: reason, q, environment, health, limit, cursor, ...unused } = body;
      unused satisfies Record<string, never>;
      if (ids) return await resumeAll(context, await named(context, ids), caller);
      const query = { q, environment, health, status: 'paused', sort: 'newest' } as const;
      const paused = await context.directory.find(query, { limit, cursor });
      const isWanted = ({ status, statusReason }: StoredSubscription) => status === 'paused' && statusReason === reason;
      const wanted = paused.items.filter(isWanted).map(({ id, url }) => ({ id, url }));
      return { ...(await resumeAll(context, wanted, caller, isWanted)), next_cursor: paused.nextCursor };
    },
  });
}

interface Address {
  id: string;
  /** Null if there is no such subscription. */
  url: string | null;
}

/** The addresses with these ids, each once. */
async function named({ store }: ConsoleContext, ids: readonly string[]): Promise<Address[]> {
  const all = [...new Set(ids)];
  const found = await loadSubscriptions(store, all);
  return all.map((id, i) => ({ id, url: found[i]?.url ?? null }));
}

async function resumeAll(
  context: ConsoleContext,
  addresses: readonly Address[],
  operator: string,
  wants = ({ status }: StoredSubscription) => status !== 'active',
): Promise<BulkResumeResult> {
  const resuming = addresses.map(async ({ id, url }): Promise<ResumeResult> => {
    const resultOf = (result: ResumeResult['result'], detail: string | null = null) => ({
      subscription_id: id,
      url,
      result,
      detail,
    });
    if (url === null) return resultOf('not_found');
    try {
      const { isWanted } = await resume(context, id, operator, wants);
      return resultOf(isWanted ? 'resumed' : 'unchanged');
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'not_found') return resultOf('not_found');
      if (error.code === 'conflict') return resultOf('refused', error.publicMessage);
      throw error;
    }
  });
  const data = await allParts(resuming, (results) => {
    const resumed = results.filter(({ result }) => result === 'resumed').length;
    if (resumed === 0) return undefined;
    return `The call has resumed at least ${resumed} of ${addresses.length} addresses. Repeat it: it leaves these as they are.`;
  });
  return { data, next_cursor: null };
}

/**
 * Resumes an address if its present state is wanted. Resolves with the subscription as it is stored now, and whether it
 * was wanted. Throws as `change` does; `conflict` also if the address has to be validated first.
 */
async function resume(
  context: ConsoleContext,
  id: string,
  operator: string,
  wants: (now: StoredSubscription) => boolean = () => true,
): Promise<{ subscription: StoredSubscription; isWanted: boolean }> {
  let isWanted = false;
  const subscription = await change(context, id, {
    operator,
    action: 'subscription.resumed',
    next(now) {
      isWanted = wants(now);
      return isWanted ? nextAddressState(now, { kind: 'resumed' }) : now;
    },
    detail: (before) => ({ was_paused_for: before.statusReason, consecutive_failures: before.consecutiveFailures }),
  });
  if (isWanted) context.logger.info({ subscription_id: id, operator }, 'subscription.resumed');
  return { subscription, isWanted };
}
