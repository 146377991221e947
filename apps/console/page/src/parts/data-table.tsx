/** Tables described by their columns, and lists of such rows that are read page by page. */
import { Box, Center, type MantineBreakpoint, Table, type TableProps, type TableTdProps } from '@mantine/core';
import type { ReactNode } from 'react';
import type { LiveList } from '../live-list.ts';
import { ActionButton } from './action-button.tsx';
import { Note, Section } from './layout.tsx';
import { countText } from './numbers.ts';
import { Loaded, Problem, Unreadable } from './states.tsx';

export interface Column<T> {
  header: string;
  cell: (row: T) => ReactNode;
  width?: TableTdProps['w'];
  /** The column is hidden on narrower screens. */
  visibleFrom?: MantineBreakpoint;
  ta?: 'right';
}

interface DataTableProps<T> extends Pick<TableProps, 'layout' | 'highlightOnHover'> {
  'aria-label': string;
  columns: Column<T>[];
  rows: T[];
  hideHeaders?: boolean;
}

export function DataTable<T extends { id: string }>({ columns, rows, hideHeaders, ...table }: DataTableProps<T>) {
  return (
    <Table layout="fixed" {...table}>
      {!hideHeaders && (
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ header, cell, width, ...props }) => (
              <Table.Th key={header} w={width} {...props}>
                {header}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
      )}
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={row.id}>
            {columns.map(({ header, cell, width, ...props }) => (
              <Table.Td key={header} w={hideHeaders ? width : undefined} {...props}>
                {cell(row)}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** A button that says what the list has besides the rows on screen, and shows it. */
export function ShowChanges({ list }: { list: Pick<LiveList<{ id: string }>, 'changes' | 'showNewest'> }) {
  const { changes, showNewest } = list;
  if (changes === null) return null;
  return <ActionButton label={changes} size="compact-sm" radius="xl" change={{ mutate: showNewest }} />;
}

const unreadText = (rows: number) =>
  rows === 1
    ? 'The last row is not refreshed any more.'
    : `The last ${countText(rows)} rows are not refreshed any more.`;

interface PagedListProps<T extends { id: string }> {
  list: LiveList<T>;
  what: string;
  title?: string;
  empty: ReactNode;
  children: (rows: T[]) => ReactNode;
}

/**
 * A list read page by page: its rows, or `empty`, a button that shows what is new, and one that loads the next page.
 */
export function PagedList<T extends { id: string }>({ list, what, title, empty, children }: PagedListProps<T>) {
  return (
    <>
      {/* Of a fixed height, so that the rows do not move when something is new. */}
      <Center h={26} mt={-10} mb={-14} pos="sticky" top={62} style={{ zIndex: 2 }} role="status">
        <ShowChanges list={list} />
      </Center>
      <Unreadable ids={list.unreadable} />
      <Section title={title} flush>
        <Loaded query={list} what={what}>
          {(rows) => (rows.length === 0 ? empty : children(rows))}
        </Loaded>
      </Section>
      {list.hasNextPage && (
        <Box mt="md">
          {list.moreError ? (
            <Problem title="The next rows can't be shown" error={list.moreError} retry={list.fetchNextPage} />
          ) : (
            <Center>
              <ActionButton
                label="Show more"
                variant="default"
                change={{ isPending: list.isFetchingNextPage, mutate: list.fetchNextPage }}
              />
            </Center>
          )}
        </Box>
      )}
      {/* Last, so that it moves nothing. */}
      {list.unread > 0 && <Note ta="center">{unreadText(list.unread)}</Note>}
    </>
  );
}
