/**
 * Lists that are read page by page. The rows on screen stay where they are; what is newer is counted until the user
 * wants to see it.
 */
import type { ListPage } from '@posthorn/operator-api';
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useNavigationType } from 'react-router';
import { call, type QueryParameters, withQuery } from './api.ts';
import { changesText, compareRows } from './live-rows.ts';
import { LIVE } from './refresh.ts';

/** Rows of a page, unless the query has a `limit`. */
const PAGE_ROWS = 50;
export type LiveList<T extends { id: string }> = ReturnType<typeof useLiveList<T>>;

/** Rows that are refreshed: the API returns no more at once. */
const MAX_REFRESHED = 250;

/**
 * `data` are the rows on screen, refreshed in place as long as they are among the first of the list; `unread` is how
 * many of the last ones are not. `changes` says in words what the list has besides them, or is null; `showNewest` shows
 * it. `total` is how many match in all, for lists that say so. `unreadable` are ids of records that are left out.
 * `moreError` is why the next page could not be read, which says nothing about the rows on screen. After the back
 * button the list is as the user left it.
 */
export function useLiveList<T extends { id: string }>(path: string, query: QueryParameters) {
  const queryClient = useQueryClient();
  const isBack = useNavigationType() === 'POP';
  const queryKey = [path, query];
  const read = async (more: QueryParameters) => {
    const page = await call<ListPage<T> & { total?: number }>('GET', withQuery(path, { ...query, ...more }));
    // Not by the browser's clock, as TanStack Query has it: what is read after that was set back would seem older.
    return { ...page, readAtMs: performance.now() };
  };
  const list = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => read({ cursor: pageParam }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    select: ({ pages }) => ({
      rows: pages.flatMap(({ data }) => data),
      total: pages.at(-1)?.total,
      unreadable: pages.flatMap(({ unreadable = [] }) => unreadable),
      readAtMs: pages.at(-1)?.readAtMs ?? 0,
    }),
    placeholderData: keepPreviousData,
    refetchOnMount: isBack ? false : 'always',
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
    // Rows on screen are not read again here. A list that has failed to load is tried again.
    refetchInterval: ({ state }) => state.status === 'error' && state.data === undefined && LIVE.refetchInterval,
  });
  const isShown = list.data !== undefined && !list.isPlaceholderData;
  const shown = list.data?.rows.length ?? 0;
  const newest = useQuery({
    queryKey: [...queryKey, 'newest'],
    queryFn: () => read(shown > PAGE_ROWS ? { limit: Math.min(shown, MAX_REFRESHED) } : {}),
    enabled: isShown,
    ...LIVE,
  });

  const isNewer = isShown && newest.data !== undefined && newest.data.readAtMs >= list.data.readAtMs;
  const live = isNewer ? compareRows(list.data.rows, !list.hasNextPage, newest.data) : null;
  const showNewest = () => queryClient.setQueryData(queryKey, { pages: [newest.data], pageParams: [null] });
  // In an empty list, the first rows appear by themselves: they move no row that the user is reading.
  const isFirst = live !== null && live.rows.length === 0 && live.added > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, with what has just been read
  useEffect(() => {
    if (isFirst) showNewest();
  }, [isFirst]);
  const listError = list.isFetchNextPageError ? null : list.error;
  const total = isNewer ? newest.data.total : list.data?.total;
  // Where the newest read covers the rows on screen, it also says what can be read again.
  const unreadableBefore = live?.unread === 0 ? [] : (list.data?.unreadable ?? []);
  return {
    ...list,
    data: live?.rows ?? list.data?.rows,
    error: newest.error ?? listError,
    moreError: list.isFetchNextPageError && !list.isFetchingNextPage ? list.error : null,
    refetch: listError ? list.refetch : newest.refetch,
    total,
    unreadable: [...new Set([...((isNewer && newest.data.unreadable) || []), ...unreadableBefore])],
    unread: live?.unread ?? 0,
    changes: live && changesText(live),
    showNewest,
  };
}
