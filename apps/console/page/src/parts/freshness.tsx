/** Says that the data on screen is not refreshed any more, and since when. */
import { Box, Paper, Text } from '@mantine/core';
import { type Query, type QueryCache, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { isAnswer, READ_TIMEOUT_MS } from '../api.ts';
import { byConsole } from '../clock.ts';
import { Instant } from './time.tsx';

/**
 * Data that is due every 2 s and older than this is stale. With the interval of the checks, it is marked within 3 s. On
 * a slow network the mark would come and go, so the time that the last answer took is added, at most that of one call.
 */
const STALE_MS = 2_750;
const CHECK_MS = 250;

const MARKED = { borderColor: 'var(--mantine-color-orange-6)', pointerEvents: 'auto' } as const;

interface Stale {
  /** When the console last answered, by the browser's clock. */
  at: number;
  /** Why the last call failed; null while it has no answer. */
  reason: string | null;
}

export function Freshness() {
  const queryClient = useQueryClient();
  const [stale, setStale] = useState<Stale | null>(null);
  useEffect(() => {
    const cache = queryClient.getQueryCache();
    // Data of a hidden tab is not refreshed: its age counts from when the tab is shown.
    let visibleSinceMs = performance.now();
    const onVisibility = () => {
      visibleSinceMs = performance.now();
    };
    // By a time that goes on when the browser's clock is set back. What is not in it was read before this began.
    const answers = new WeakMap<Query, { atMs: number; tookMs: number }>();
    const askedAtMs = new WeakMap<Query, number>();
    const unsubscribe = cache.subscribe((event) => {
      if (event.type !== 'updated') return;
      const atMs = performance.now();
      if (event.action.type === 'fetch') askedAtMs.set(event.query, atMs);
      if (event.action.type !== 'success') return;
      const tookMs = atMs - (askedAtMs.get(event.query) ?? atMs);
      answers.set(event.query, { atMs, tookMs: Math.min(tookMs, READ_TIMEOUT_MS) });
      askedAtMs.delete(event.query);
    });
    const check = () => {
      const isStale = (query: Query) => {
        const { atMs, tookMs } = answers.get(query) ?? { atMs: 0, tookMs: 0 };
        return performance.now() - Math.max(visibleSinceMs, atMs) > STALE_MS + tookMs;
      };
      const found = findStale(cache, isStale);
      setStale((before) => (before?.at === found?.at && before?.reason === found?.reason ? before : found));
    };
    document.addEventListener('visibilitychange', onVisibility);
    const timer = setInterval(check, CHECK_MS);
    return () => {
      document.removeEventListener('visibilitychange', onVisibility);
      unsubscribe();
      clearInterval(timer);
    };
  }, [queryClient]);
  const staleAt = stale?.at ?? 0;
  const answeredAt = useMemo(() => new Date(byConsole(staleAt)).toISOString(), [staleAt]);
  return (
    <Box role="status" pos="fixed" bottom={12} left={0} right={0} style={{ zIndex: 150, pointerEvents: 'none' }}>
      {stale && (
        <Paper
          className="stale-mark"
          withBorder
          shadow="md"
          px="md"
          py="xs"
          mx="auto"
          w="max-content"
          maw="calc(100vw - 24px)"
          style={MARKED}
        >
          <Text size="sm">
            <b>
              Out of date: last answer at <Instant at={answeredAt} />.
            </b>{' '}
            {stale.reason ?? 'The console has not answered since.'}
          </Text>
        </Paper>
      )}
    </Box>
  );
}

/** Returns when the oldest stale data on screen was read, and why its refresh fails. */
function findStale(cache: QueryCache, isStale: (query: Query) => boolean): Stale | null {
  const overdue = cache
    .getAll()
    .filter((query) => query.meta?.live === true && query.isActive() && isStale(query))
    .map(({ state }) => ({ at: state.dataUpdatedAt, error: state.fetchFailureReason ?? state.error }))
    .filter(({ at, error }) => at > 0 && !isAnswer(error))
    .sort((a, b) => a.at - b.at)[0];
  return overdue === undefined ? null : { at: overdue.at, reason: overdue.error?.message ?? null };
}
