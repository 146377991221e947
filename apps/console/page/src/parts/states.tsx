/** Placeholders for content: loading, failed, or empty with a next step. */
import { Alert, Center, Loader, Stack, Text } from '@mantine/core';
import { AlertIcon, StopIcon } from '@primer/octicons-react';
import type { ReactNode } from 'react';
import { ApiError, isAnswer, isMissing } from '../api.ts';
import { ActionButton } from './action-button.tsx';
import { Note } from './layout.tsx';
import { amountText, countText } from './numbers.ts';

/** The part of a TanStack query that is shown. */
export interface Query<T> {
  data: T | undefined;
  error: Error | null;
  refetch: () => unknown;
}

interface LoadedProps<T> {
  query: Query<T>;
  /** Names the data in messages. */
  what: string;
  children: (data: T) => ReactNode;
}

/**
 * Shows a query's data, or a placeholder. If a refresh is refused, keeps the earlier data and says so. A refresh
 * without an answer moves nothing: parts/freshness.tsx marks the data.
 */
export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) {
    const title = isMissing(query.error) ? `This ${what} no longer exists` : 'This data may be out of date';
    return (
      <>
        {isAnswer(query.error) && <Problem title={title} error={query.error} retry={query.refetch} />}
        {children(query.data)}
      </>
    );
  }
  if (isMissing(query.error)) {
    return (
      <Empty title={`No such ${what}`}>It may have been deleted or have expired, or a part of its id is missing.</Empty>
    );
  }
  if (query.error) return <Problem title={`The ${what} can't be shown`} error={query.error} retry={query.refetch} />;
  return <Loading />;
}

/** Takes the place of content that is being loaded. */
export function Loading({ height = 160 }: { height?: number }) {
  return (
    <Center mih={height}>
      <Loader size="sm" role="status" aria-label="Loading" />
    </Center>
  );
}

/** What failed and why, with a button to try again. */
export function Problem({ title, error, retry }: { title: string; error: Error; retry: () => unknown }) {
  return (
    <Alert color="red" icon={<StopIcon />} title={title} mb="md" role="alert">
      <Text size="sm" mb="xs">
        {error.message}
      </Text>
      {error instanceof ApiError &&
        Object.entries(error.fields).map(([name, message]) => (
          <Text key={name} size="sm" mb="xs">
            <b>{name}</b>: {message}
          </Text>
        ))}
      <ActionButton label="Try again" size="xs" variant="default" change={{ mutate: retry }} />
    </Alert>
  );
}

/** Ids of records that can't be read that the notice names. */
const MAX_UNREADABLE_SHOWN = 10;

/** Says that a list leaves out records that can't be read, and which. */
export function Unreadable({ ids = [] }: { ids: readonly string[] | undefined }) {
  const text = `${amountText(ids.length, 'record')} can't be read and ${ids.length === 1 ? 'is' : 'are'} left out`;
  return <UnreadableNotice title={text} ids={ids} count={ids.length} />;
}

/** Names `count` records that can't be read, as far as `ids` has them; nothing if there are none. */
export function UnreadableNotice({ title, ids, count }: { title: string; ids: readonly string[]; count: number }) {
  if (count === 0) return null;
  const shown = ids.slice(0, MAX_UNREADABLE_SHOWN);
  return (
    <Alert color="orange" icon={<AlertIcon />} title={title} role="status">
      <Text size="sm" className="mono" style={{ overflowWrap: 'anywhere' }}>
        {shown.join(', ')}
        {count > shown.length && ` and ${countText(count - shown.length)} more`}
      </Text>
      <Text size="sm">See “A record that can't be read” in docs/runbooks.md.</Text>
    </Alert>
  );
}

/** An empty list or a missing resource; `action` is the next step. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <Stack align="center" gap={6} py={48} px="md" ta="center">
      <Text fw={600}>{title}</Text>
      {children && <Note maw={460}>{children}</Note>}
      {action}
    </Stack>
  );
}
