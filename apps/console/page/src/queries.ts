/** All reads and changes, with TanStack Query: which reads are refreshed, and which a change invalidates. */

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

/** Interval of refreshing visible data. */
const LIVE_MS = 2_000;

/** The session has ended: show the sign-in page, which then returns to the current page. */
function onError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) queryClient.setQueryData(['session'], null);
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      // A client error is not retried, because the result would be the same.
      retry: (failures, error) =>
        failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
      staleTime: 1_000,
    },
  },
});

/** Returns the session; null if nobody is signed in. */
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

/** Reads a resource and refreshes it every two seconds while it is visible. */
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

/** Reads the request of an attempt, or the one that would be sent now. */
export const useRequest = (deliveryId: string, attempt?: number) =>
  useLive<DeliveryRequest>(
    ['delivery', deliveryId, 'request', attempt],
    withQuery(`/v1/deliveries/${deliveryId}/request`, { attempt }),
    { live: false },
  );

/** Reads the number of failed deliveries that a bulk replay would process. */
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

/** Reads a list page by page. It is refreshed while only its first page is loaded. */
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

/** Reads the newest 250 subscriptions, for selection. */
export function useAddresses() {
  return useQuery({
    queryKey: ['subscriptions', 'addresses'],
    queryFn: () => call<Page<Subscription>>('GET', '/v1/subscriptions?limit=250'),
    staleTime: 30_000,
  });
}

/** Returns the URLs of these subscriptions by id. */
export function useUrls(): Map<string, string> {
  return new Map((useAddresses().data?.data ?? []).map(({ id, url }) => [id, url]));
}

/** Changes something through the API. Shows an error message, unless the caller shows it in a form. */
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
