/** What the page reads and changes, with TanStack Query: who refreshes by itself, and what a change makes stale. */

import { notifications } from '@mantine/notifications';
import type {
  AddressAttempts,
  AuditEntry,
  Delivery,
  DeliveryRequest,
  DeliveryWithAttempts,
  FailedDeliveries,
  Overview,
  Page,
  Replay,
  Session,
  Subscription,
} from '@posthorn/operator-api';
import {
  keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
} from '@tanstack/react-query';
import { ApiError, call, type Query, setCsrfToken, withQuery } from './api.ts';

/** How often what is on screen is read again. */
const LIVE_MS = 2_000;

/** A session that ended while the page was open: back to signing in, and from there to where one was. */
function onError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) queryClient.setQueryData(['session'], null);
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      // What the API refuses it refuses again; what did not arrive may arrive.
      retry: (failures, error) =>
        failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
      staleTime: 1_000,
    },
  },
});

/** Who is signed in; null for nobody. */
export function useSession() {
  return useQuery({
    queryKey: ['session'],
    queryFn: async () => {
      try {
        const session = await call<Session>('GET', '/v1/session');
        setCsrfToken(session.csrf_token);
        return session;
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return null;
        throw error;
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** One thing, read again every two seconds while it is on screen. */
function useLive<T>(key: readonly unknown[], path: string, options: { enabled?: boolean; live?: boolean } = {}) {
  return useQuery({
    queryKey: key,
    queryFn: () => call<T>('GET', path),
    enabled: options.enabled ?? true,
    refetchInterval: options.live === false ? false : LIVE_MS,
  });
}

export const useOverview = () => useLive<Overview>(['overview'], '/v1/overview');
export const useSubscription = (id: string) => useLive<Subscription>(['subscription', id], `/v1/subscriptions/${id}`);
export const useAddressAttempts = (id: string) =>
  useLive<AddressAttempts>(['subscription', id, 'attempts'], `/v1/subscriptions/${id}/attempts`);
export const useDelivery = (id: string) => useLive<DeliveryWithAttempts>(['delivery', id], `/v1/deliveries/${id}`);
export const useReplay = (id: string) => useLive<Replay>(['replay', id], `/v1/replays/${id}`);

/** The request of an attempt, or as it would be sent now. */
export const useRequest = (deliveryId: string, attempt?: number) =>
  useLive<DeliveryRequest>(
    ['delivery', deliveryId, 'request', attempt],
    withQuery(`/v1/deliveries/${deliveryId}/request`, { attempt }),
    { live: false },
  );

/** How many failed deliveries a bulk replay would look at. */
export const useFailedCount = (
  subscriptionId: string | null,
  range: { from?: string | undefined; to?: string | undefined },
) =>
  useQuery({
    queryKey: ['failed', subscriptionId, range],
    queryFn: () =>
      call<FailedDeliveries>('GET', withQuery(`/v1/subscriptions/${subscriptionId}/failed-deliveries`, range)),
    enabled: subscriptionId !== null,
    placeholderData: keepPreviousData,
  });

/** A list, page by page. It is live as long as one looks at its first page alone. */
function useList<T>(name: string, path: string, query: Query) {
  return useInfiniteQuery({
    queryKey: [name, 'list', query],
    queryFn: ({ pageParam }) => call<Page<T>>('GET', withQuery(path, { ...query, cursor: pageParam })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : LIVE_MS),
  });
}

export const useSubscriptions = (query: Query) => useList<Subscription>('subscriptions', '/v1/subscriptions', query);
export const useDeliveries = (query: Query) => useList<Delivery>('deliveries', '/v1/deliveries', query);
export const useReplays = (query: Query) => useList<Replay>('replays', '/v1/replays', query);
export const useAudit = (query: Query) => useList<AuditEntry>('audit', '/v1/audit', query);

/** Addresses to choose from: the newest 250. */
export function useAddresses() {
  return useQuery({
    queryKey: ['subscriptions', 'addresses'],
    queryFn: () => call<Page<Subscription>>('GET', '/v1/subscriptions?limit=250'),
    staleTime: 30_000,
  });
}

/** The urls of those addresses, by id. */
export function useUrls(): Map<string, string> {
  return new Map((useAddresses().data?.data ?? []).map(({ id, url }) => [id, url]));
}

/** A change by the API. Says what went wrong, unless the caller shows it at its fields. */
export function useChange<V, T>(
  change: (value: V) => Promise<T>,
  options: { done?: string; onDone?: (result: T, value: V) => void; quiet?: boolean } = {},
) {
  return useMutation({
    mutationFn: change,
    onSuccess(result, value) {
      void queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
      if (options.done) notifications.show({ message: options.done, color: 'teal' });
      options.onDone?.(result, value);
    },
    onError(error) {
      if (!options.quiet)
        notifications.show({ title: 'That did not work', message: error.message, color: 'red', autoClose: 10_000 });
    },
  });
}
