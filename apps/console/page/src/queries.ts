/** All reads and changes, with TanStack Query: which reads are refreshed, and which a change invalidates. */
import type {
  AddressAttempts,
  AuditEntry,
  Delivery,
  DeliveryRequest,
  DeliveryWithAttempts,
  Erasure,
  Explanation,
  FailedDeliveries,
  Overview,
  PublishedEvent,
  Replay,
  Session,
  StartedReplay,
  Subscription,
  SubscriptionName,
  SubscriptionsPage,
  Timeline,
} from '@posthorn/operator-api';
import {
  keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  type UseQueryOptions,
  useMutation,
  useQueries,
  useQuery,
} from '@tanstack/react-query';
import { useEffect } from 'react';
import { useNavigate } from 'react-router';
import { ApiError, call, callText, isMissing, type QueryParameters, setCsrfToken, withQuery } from './api.ts';
import { useLiveList } from './live-list.ts';
import { loadName } from './name-loader.ts';
import { LIVE } from './refresh.ts';

/** Names change rarely; a change on this page reads them again at once. */
const NAME_FRESH_MS = 60_000;

const SESSION_KEY = ['session'];
const exceptSession = { predicate: ({ queryKey }: { queryKey: readonly unknown[] }) => queryKey[0] !== SESSION_KEY[0] };

/** Whether a session ended while the operator was using it. */
let hasExpired = false;
export const sessionHasExpired = () => hasExpired;
/** Whether a sign-out is in progress. A read in flight may then get 401 although no session has expired. */
let isSigningOut = false;

/**
 * How many things are on the screen that leaving it would lose: a secret that is not shown again, a form. While there
 * are any, the end of the session does not replace the page.
 */
let kept = 0;
export function useKept(isAny = true): void {
  useEffect(() => {
    if (!isAny) return;
    kept += 1;
    return () => {
      kept -= 1;
    };
  }, [isAny]);
}

/**
 * After 401, shows the sign-in page, which then returns to the current page. After 403, reads the session that another
 * tab has begun.
 */
export async function onApiError(error: unknown): Promise<void> {
  if (!(error instanceof ApiError)) return;
  // Awaited before the change is reported as failed: a repetition with the old CSRF token would be refused again.
  if (error.status === 403) await queryClient.invalidateQueries({ queryKey: SESSION_KEY });
  if (error.status !== 401 || kept > 0) return;
  if (!isSigningOut && queryClient.getQueryData(SESSION_KEY)) hasExpired = true;
  queryClient.setQueryData(SESSION_KEY, null);
  // A question about the page would cover the form to sign in.
  void import('./parts/overlays.tsx').then(({ modals }) => modals.closeAll());
}

/** Whether a repetition may succeed. After a client error, the result would be the same. */
const mayPass = (error: Error) => error instanceof ApiError && (error.status === 0 || error.status >= 500);

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onApiError }),
  mutationCache: new MutationCache({ onError: onApiError }),
  defaultOptions: {
    // Without a network, calls fail with a reason. They would wait for it unseen, and a change be made much later.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      refetchOnReconnect: true,
      retry: (failures, error) => failures < 2 && mayPass(error),
      staleTime: 1_000,
    },
  },
});

/** Returns the session; null if nobody is signed in. While it cannot be read, `failureReason` says why. */
export function useSession() {
  return useQuery({
    queryKey: SESSION_KEY,
    queryFn: async () => {
      try {
        return setSession(await call<Session>('GET', '/v1/session'));
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return null;
        throw error;
      }
    },
    // Without end as long as there is nothing else to show.
    retry: (failures, error) => mayPass(error) && (failures < 2 || queryClient.getQueryData(SESSION_KEY) === undefined),
    retryDelay: LIVE.refetchInterval,
    // Another tab may have signed in: without a session, it is read again when the sign-in page or its tab is shown.
    staleTime: ({ state }) => (state.data === null ? 0 : Number.POSITIVE_INFINITY),
  });
}

/** Stores the session of an operator who has just signed in. */
export async function beginSession(session: Session): Promise<void> {
  // A read that was sent before this session began would find nobody signed in.
  await queryClient.cancelQueries({ queryKey: SESSION_KEY });
  queryClient.setQueryData(SESSION_KEY, setSession(session));
}

/** Makes later calls part of this session, and returns it. */
function setSession(session: Session): Session {
  hasExpired = false;
  setCsrfToken(session.csrf_token);
  return session;
}

/** Signs out and forgets all data. */
export async function endSession(): Promise<void> {
  isSigningOut = true;
  try {
    await call('DELETE', '/v1/session');
  } finally {
    isSigningOut = false;
  }
  setCsrfToken(null);
  queryClient.setQueryData(SESSION_KEY, null);
  queryClient.removeQueries(exceptSession);
}

/** The options of a read that is refreshed while it is visible and its resource exists. */
const liveRead = <T>(path: string) =>
  ({
    queryKey: [path],
    queryFn: () => call<T>('GET', path),
    ...LIVE,
    refetchInterval: ({ state }) => !isMissing(state.error) && LIVE.refetchInterval,
  }) satisfies UseQueryOptions<T>;

function useRead<T>(path: string, options: Partial<UseQueryOptions<T>> = {}) {
  return useQuery({ ...liveRead<T>(path), ...options });
}
/** The options of a read that is not refreshed. */
const ONCE = { refetchInterval: false, meta: {} } as const;

export const useOverview = () => useRead<Overview>('/v1/overview');
export const useSubscription = (id: string) => useRead<Subscription>(`/v1/subscriptions/${id}`);
export const useAddressAttempts = (id: string) => useRead<AddressAttempts>(`/v1/subscriptions/${id}/attempts`);
export const useDelivery = (id: string) => useRead<DeliveryWithAttempts>(`/v1/deliveries/${id}`);
export const useErasure = (id: string) => useRead<Erasure>(`/v1/erasures/${id}`);
/** Reads a bulk replay, or a batch: each has a path of its own. */
export const useReplay = (path: string) => useRead<StartedReplay>(path);

/** Reads an event, and the text of the response, in which numbers have their original digits. */
export function useEvent(id: string, environment: string | null) {
  const path = withQuery(`/v1/events/${encodeURIComponent(id)}`, { environment });
  return useRead(path, {
    queryFn: async () => {
      const text = await callText('GET', path);
      return { event: JSON.parse(text) as PublishedEvent, text };
    },
  });
}

export const useTimeline = (query: QueryParameters) => useRead<Timeline>(withQuery('/v1/timeline', query));

export const useExplanation = (query: QueryParameters) => useRead<Explanation>(withQuery('/v1/explain', query));

/** Reads the request of an attempt, or the one that would be sent now. */
export const useRequest = (deliveryId: string, attempt?: number) =>
  useRead<DeliveryRequest>(withQuery(`/v1/deliveries/${deliveryId}/request`, { attempt }), ONCE);

/** A count with a filter reads up to 50,000 deliveries of an address, which takes about a second. */
const FILTERED_COUNT_MS = 10_000;

/**
 * Reads some addresses, and how many failed deliveries of them a bulk replay would process: none until all are read.
 */
export function useReplayCandidates(subscriptionIds: readonly string[], scope: QueryParameters) {
  const addresses = useQueries({
    queries: subscriptionIds.map((id) => liveRead<Subscription>(`/v1/subscriptions/${id}`)),
    combine: (results) => ({
      known: results.flatMap(({ data }) => data ?? []),
      error: results.find(({ error }) => error)?.error ?? null,
    }),
  });
  const isFiltered = Object.keys(scope).length > 0;
  const seldom = { refetchInterval: FILTERED_COUNT_MS * subscriptionIds.length, meta: {} };
  const failed = useQueries({
    queries: subscriptionIds.map((id) => ({
      ...liveRead<FailedDeliveries>(withQuery(`/v1/subscriptions/${id}/failed-deliveries`, scope)),
      ...(isFiltered && seldom),
    })),
    combine: (results) => ({
      count: results.every(({ data }) => data)
        ? results.reduce((all, { data }) => all + (data?.count ?? 0), 0)
        : undefined,
      error: results.find(({ error }) => error)?.error ?? null,
    }),
  });
  return { known: addresses.known, count: failed.count, error: addresses.error ?? failed.error };
}

export const useSubscriptions = (query: QueryParameters) => useLiveList<Subscription>('/v1/subscriptions', query);
export const useDeliveries = (query: QueryParameters) => useLiveList<Delivery>('/v1/deliveries', query);
export const useReplays = () => useLiveList<Replay>('/v1/replays', {});
export const useErasures = () => useLiveList<Erasure>('/v1/erasures', {});
export const useAudit = (query: QueryParameters) => useLiveList<AuditEntry>('/v1/audit', query);

/** Reads the first subscriptions that match, for selection. */
export const useSearch = (q: string, limit: number) =>
  useRead<SubscriptionsPage>(withQuery('/v1/subscriptions', { q, limit, sort: 'url' }), {
    ...ONCE,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });

/** Returns the names of these subscriptions by id, as soon as they are loaded. A deleted one has none. */
export function useNames(ids: readonly string[]): Map<string, SubscriptionName> {
  return useQueries({
    queries: [...new Set(ids)].map((id) => ({
      queryKey: ['name', id],
      queryFn: () => loadName(id),
      staleTime: NAME_FRESH_MS,
    })),
    combine: byId,
  });
}

function byId(results: { data: SubscriptionName | null | undefined }[]): Map<string, SubscriptionName> {
  return new Map(results.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])));
}

/** Returns the URLs of these subscriptions by id, as soon as they are loaded. */
export function useUrls(ids: readonly string[]): Map<string, string> {
  return new Map(Array.from(useNames(ids), ([id, { url }]) => [id, url]));
}

/** A notification; green unless it says otherwise. */
interface Notice {
  message: string;
  color?: string;
}

interface ChangeOptions<T> {
  /** The notification after a success. */
  done?: string | ((result: T) => string | Notice);
  onDone?: (result: T) => void;
  /** The path of the page that is opened after a success, unless the user has gone to another one meanwhile. */
  opens?: (result: T) => string;
  /** The caller shows errors itself, for example in a form, while its page is shown. */
  quiet?: boolean;
}

/** Its code comes with that of the dialogs, after the first paint. */
function notify(notification: Parameters<typeof import('@mantine/notifications').notifications.show>[0]): void {
  void import('./parts/overlays.tsx').then(({ notifications }) => notifications.show(notification));
}

/** Changes something through the API. Shows an error message, unless `quiet`. */
export function useChange<T, V = void>(change: (value: V) => Promise<T>, options: ChangeOptions<T> = {}) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: change,
    onMutate: () => window.location.pathname,
    onSuccess(result, _value, startedOn) {
      void queryClient.invalidateQueries(exceptSession);
      const done = typeof options.done === 'function' ? options.done(result) : options.done;
      if (done) notify({ color: 'teal', ...(typeof done === 'string' ? { message: done } : done) });
      options.onDone?.(result);
      if (options.opens && window.location.pathname === startedOn) navigate(options.opens(result));
    },
    onError(error, _value, startedOn) {
      if (options.quiet && window.location.pathname === startedOn) return;
      const fields = error instanceof ApiError ? Object.entries(error.fields) : [];
      const message = [error.message, ...fields.map(([name, text]) => `${name}: ${text}.`)].join(' ');
      notify({ title: 'The action failed', message, color: 'red', autoClose: 10_000 });
    },
  });
}

/** A change that is a POST without a body. */
export const usePost = <T>(path: string, options?: ChangeOptions<T>) => useChange(() => call<T>('POST', path), options);
