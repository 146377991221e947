/** Chooses a subscription among any number of them: the console searches while the user types. */
import { Select, type SelectProps, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import type { SubscriptionName } from '@posthorn/operator-api';
import { useState } from 'react';
import { useNames, useSearch } from '../queries.ts';
import { Note } from './layout.tsx';
import { countText } from './numbers.ts';

const SUBSCRIPTION_ID = /^sub_[A-Za-z0-9_-]{22}$/;
/** Pause in typing after which a search starts. */
const TYPING_MS = 200;
/** Options shown at once. */
const MAX_OPTIONS = 20;

interface AddressPickerProps
  extends Pick<SelectProps, 'label' | 'description' | 'aria-label' | 'placeholder' | 'clearable' | 'w' | 'maw' | 'mb'> {
  /** The id of the chosen subscription. */
  value: string | null;
  onChange: (id: string | null) => void;
}

export function AddressPicker({ value, onChange, ...select }: AddressPickerProps) {
  const chosen = useNames(value === null ? [] : [value]).get(value ?? '');
  const chosenLabel = chosen?.url ?? value ?? '';
  const [text, setText] = useState('');
  // While nothing is typed, the field contains the chosen address.
  const isTyped = text.trim() !== '' && text !== chosenLabel;
  const [q] = useDebouncedValue(isTyped ? text.trim() : '', TYPING_MS);
  const found = useSearch(q, MAX_OPTIONS);
  const names = new Map<string, SubscriptionName>((found.data?.data ?? []).map((name) => [name.id, name]));
  const ids = [...names.keys()];
  const type = (typed: string) => {
    setText(typed);
    // A pasted id needs no search. A deleted subscription would not be found, but its deliveries still are.
    const id = typed.trim();
    if (SUBSCRIPTION_ID.test(id) && id !== value) onChange(id);
  };
  // The field shows the label of the chosen option only if it is among the options.
  if (value !== null && !ids.includes(value)) ids.push(value);
  if (chosen) names.set(chosen.id, chosen);
  const items = ids.map((id) => ({ value: id, label: names.get(id)?.url ?? id }));
  const total = found.data?.total ?? 0;
  const more = `${MAX_OPTIONS} of ${countText(total)}: type a part of the address or the description`;
  return (
    <Select
      {...select}
      data={total > MAX_OPTIONS ? [{ group: more, items }] : items}
      value={value}
      onChange={(id) => onChange(id)}
      searchable
      searchValue={text}
      onSearchChange={type}
      onDropdownOpen={() => setText('')}
      onDropdownClose={() => setText(chosenLabel)}
      filter={({ options }) => options}
      renderOption={({ option }) => (
        <div style={{ minWidth: 0 }}>
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            {option.label}
          </Text>
          <Note size="xs" lineClamp={1}>
            {names.get(option.value)?.description || option.value}
          </Note>
        </div>
      )}
      nothingFoundMessage={found.error?.message ?? (found.isFetching ? 'Searching…' : 'No matching addresses')}
      maxDropdownHeight={320}
    />
  );
}
