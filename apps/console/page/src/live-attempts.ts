/**
 * Follows the live tail of attempts while the tab is visible: the newest rows, what is missing, and whether the stream
 * is alive.
 */
import { useDocumentVisibility } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { useEffect, useReducer } from 'react';
import { ApiError, isAnswer, open, type QueryParameters, withQuery } from './api.ts';
import { onApiError } from './queries.ts';
import { type Change, changeRows, noRows } from './tail-rows.ts';
import { together } from './together.ts';

const RECONNECT_MS = 1_000;
/** A stream without a heartbeat (every 2 s) for so long is dead, although its connection was not closed. */
const SILENCE_MS = 6_000;
/** Hundreds of attempts a second, each shown when it comes, would keep a browser too busy to respond. */
const SHOW_EVERY_MS = 1_000;

/** `filter` must not change: render the component anew. Rows wait while the list is paused. */
export function useLiveAttempts(filter: QueryParameters) {
  const queryClient = useQueryClient();
  const isVisible = useDocumentVisibility() === 'visible';
  const [state, dispatch] = useReducer(changeRows, noRows);
  const path = withQuery('/v1/tail', filter);
  // Only so that parts/freshness.tsx says since when no heartbeat has come, and why.
  const queryKey = ['heartbeat', path];
  useQuery({
    queryKey,
    queryFn: () => queryClient.getQueryData(queryKey) ?? 0,
    enabled: isVisible,
    gcTime: 0,
    meta: { live: true },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key follows from the path
  useEffect(() => {
    if (!isVisible) return;
    const leaving = new AbortController();
    const onError = (error: ApiError) => {
      void onApiError(error);
      if (isAnswer(error)) dispatch({ kind: 'failed', error });
      else queryClient.getQueryCache().find({ queryKey })?.setState({ error });
    };
    const onAlive = () => queryClient.setQueryData(queryKey, 0);
    void follow(path, { signal: leaving.signal, lastId: state.lastId, dispatch, onAlive, onError });
    return () => leaving.abort();
  }, [path, isVisible]);
  return { ...state, pause: () => dispatch({ kind: 'paused' }), resume: () => dispatch({ kind: 'resumed' }) };
}

interface Following {
  signal: AbortSignal;
  lastId: string | undefined;
  dispatch: (change: Change) => void;
  onAlive: () => void;
  onError: (error: ApiError) => void;
}

/** Connects again until the signal fires, or until the console refuses the call. */
async function follow(path: string, following: Following): Promise<void> {
  const { signal, onError } = following;
  for (let { lastId } = following; !signal.aborted; ) {
    try {
      for await (const id of readOnce(path, lastId, following)) lastId = id ?? lastId;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError) onError(error);
      if (error instanceof ApiError && [401, 404, 422].includes(error.status)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

/**
 * Dispatches the events of one connection, and yields the place of each. Throws if the connection is refused, breaks or
 * is silent.
 */
async function* readOnce(path: string, lastId: string | undefined, { signal, dispatch, onAlive }: Following) {
  const silence = new AbortController();
  const startTimer = () => setTimeout(() => silence.abort(), SILENCE_MS);
  let timer = startTimer();
  const changes = together<Change>((all) => {
    onAlive();
    for (const change of all) dispatch(change);
  }, SHOW_EVERY_MS);
  try {
    const body = await open(path, lastId, AbortSignal.any([signal, silence.signal]));
    dispatch({ kind: 'opened' });
    const reader = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader();
    for (let { value } = await reader.read(); value; { value } = await reader.read()) {
      clearTimeout(timer);
      timer = startTimer();
      const { id, event, data } = value;
      if (event === 'attempt') changes.add({ kind: 'attempt', attempt: { ...JSON.parse(data), id } });
      else if (event === 'gap') changes.add({ kind: 'gap', dropped: JSON.parse(data).dropped });
      else changes.add({ kind: 'place', lastId: id });
      yield id;
    }
  } finally {
    clearTimeout(timer);
    changes.flush();
  }
}
