/** Says that the data on screen is not refreshed any more, and since when. */
import { Box, Paper, Text } from '@mantine/core';
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { isAnswer } from '../api.ts';
import { byConsole } from '../clock.ts';
import { Instant } from './time.tsx';

/** Data that is due every 2 s and older than this is stale. With the interval of the checks, it is marked within 3 s. */
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
    // Data of a hidden tab is not refreshed: its age counts from when the tab is shown.
    let visibleSince = Date.now();
    const onVisibility = () => {
      visibleSince = Date.now();
    };
    const check = () => {
      const found = Date.now() - visibleSince > STALE_MS ? findStale(queryClient) : null;
      setStale((before) => (before?.at === found?.at && before?.reason === found?.reason ? before : found));
    };
    document.addEventListener('visibilitychange', onVisibility);
    const timer = setInterval(check, CHECK_MS);
    return () => {
      document.removeEventListener('visibilitychange', onVisibility);
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
function findStale(queryClient: QueryClient): Stale | null {
  const overdue = queryClient
    .getQueryCache()
    .getAll()
    .filter((query) => query.meta?.live === true && query.isActive())
    .map(({ state }) => ({ at: state.dataUpdatedAt, error: state.fetchFailureReason ?? state.error }))
    .filter(({ at, error }) => at > 0 && Date.now() - at > STALE_MS && !isAnswer(error))
    .sort((a, b) => a.at - b.at)[0];
  return overdue === undefined ? null : { at: overdue.at, reason: overdue.error?.message ?? null };
}
