/** Finds the addresses that a picker offers: the console searches while the user types. */
import { Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import type { SubscriptionName } from '@posthorn/operator-api';
import { useNames, useSearch } from '../queries.ts';
import { Note } from './layout.tsx';
import { countText } from './numbers.ts';

export const SUBSCRIPTION_ID = /^sub_[A-Za-z0-9_-]{22}$/;
/** Pause in typing after which a search starts. */
const TYPING_MS = 200;
/** Options shown at once. */
const MAX_OPTIONS = 20;

/**
 * Returns what a picker needs: the addresses that match a text and those that are chosen, and the label that it shows
 * of one.
 */
export function useAddressOptions(text: string, chosen: readonly string[]) {
  const [q] = useDebouncedValue(text, TYPING_MS);
  const found = useSearch(q, MAX_OPTIONS);
  const chosenNames = useNames(chosen);
  const names = new Map<string, SubscriptionName>((found.data?.data ?? []).map((name) => [name.id, name]));
  for (const [id, name] of chosenNames) names.set(id, name);
  const ids = new Set([...(found.data?.data ?? []).map(({ id }) => id), ...chosen]);
  const labelOf = (id: string) => names.get(id)?.url ?? id;
  const items = Array.from(ids, (id) => ({ value: id, label: labelOf(id) }));
  const total = found.data?.total ?? 0;
  const more = `${MAX_OPTIONS} of ${countText(total)}: type a part of the address or the description`;
  const options = {
    data: total > MAX_OPTIONS ? [{ group: more, items }] : items,
    filter: <T,>({ options }: { options: T }) => options,
    renderOption: ({ option }: { option: { value: string; label: string } }) => (
      <div style={{ minWidth: 0 }}>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {option.label}
        </Text>
        <Note size="xs" lineClamp={1}>
          {names.get(option.value)?.description || option.value}
        </Note>
      </div>
    ),
    nothingFoundMessage: found.error?.message ?? (found.isFetching ? 'Searching…' : 'No matching addresses'),
    maxDropdownHeight: 320,
  };
  return { options, labelOf };
}
