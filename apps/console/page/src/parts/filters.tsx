/** The filters of a list. They are kept in the URL, so that a link and the back button show the same list. */
import { Select, type SelectProps, type TextInputProps } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useLocation, useSearchParams } from 'react-router';
import { ActionButton } from './action-button.tsx';
import { AddressPicker } from './address-picker.tsx';
import { rememberSearch } from './list-search.ts';
import { SearchField } from './search-field.tsx';

type Values<N extends string> = Partial<Record<N, string | null>>;
type Filters<N extends string> = ReturnType<typeof useFilters<N>>;

/** Orders a list, and leaves nothing out: "Clear" keeps it. */
const ORDER = 'sort';

/** A change adds no entry to the browser history. */
export function useFilters<N extends string>(names: readonly N[]) {
  const [search, setSearch] = useSearchParams();
  const { pathname, search: text } = useLocation();
  const [timesCleared, setTimesCleared] = useState(0);
  useEffect(() => rememberSearch(pathname, text), [pathname, text]);
  const set = (values: Values<N>): void => {
    // The user has already left, and the code of the next page is still loading: a change would lead back.
    if (window.location.pathname !== pathname) return;
    // Another filter may have changed since the last rendering.
    const now = new URLSearchParams(window.location.search);
    for (const [name, value] of Object.entries<string | null | undefined>(values)) {
      if (value) now.set(name, value);
      else now.delete(name);
    }
    setSearch(now, { replace: true });
  };
  const clearable = names.filter((name) => name !== ORDER);
  return {
    filter: Object.fromEntries(names.map((name) => [name, search.get(name)])) as Record<N, string | null>,
    isFiltered: clearable.some((name) => search.get(name)),
    set,
    /** Clears these filters, and nothing else that the URL has. */
    clear: () => {
      setTimesCleared(timesCleared + 1);
      set(Object.fromEntries(clearable.map((name) => [name, null])) as Values<N>);
    },
    timesCleared,
  };
}

/** The width of a filter in pixels; on narrow screens two filters share a line. */
export const filterWidth = (widthPx: number) => ({ base: 'calc(50% - 6px)', xs: widthPx });

export interface FilterProps<N extends string> {
  filters: Filters<N>;
  name: N;
  label: string;
}

/** What the field of a filter gets. `also` are other filters that a change sets. */
export function fieldOf<N extends string>({ filters, name, label }: FilterProps<N>, also?: Values<N>) {
  return {
    'aria-label': label,
    value: filters.filter[name],
    onChange: (value: string | null) => filters.set({ ...also, [name]: value } as Values<N>),
  };
}

interface SelectFilterProps<N extends string> extends FilterProps<N>, Pick<SelectProps, 'data' | 'searchable'> {
  also?: Values<N>;
  widthPx: number;
}

/** Filters a list by one value of a field, or by none. */
export function SelectFilter<N extends string>(props: SelectFilterProps<N>) {
  const { filters, name, label, also, widthPx, ...select } = props;
  return (
    <Select<string>
      placeholder={`Any ${label.toLowerCase()}`}
      clearable
      w={filterWidth(widthPx)}
      {...fieldOf({ filters, name, label }, also)}
      {...select}
    />
  );
}

/** Filters a list by a text, while the user types. */
export function SearchFilter<N extends string>({
  placeholder,
  w = filterWidth(230),
  ...filter
}: FilterProps<N> & Pick<TextInputProps, 'placeholder' | 'w'>) {
  // Clearing the filters makes it a new field: it may have text that is not in the URL yet.
  return <SearchField key={filter.filters.timesCleared} placeholder={placeholder} w={w} {...fieldOf(filter)} />;
}

export function AddressFilter({ filters }: { filters: Filters<'subscription_id'> }) {
  return (
    <AddressPicker
      placeholder="Any address"
      w={filterWidth(290)}
      {...fieldOf({ filters, name: 'subscription_id', label: 'Address' })}
    />
  );
}

/** Clears all filters of a list, if there are any. */
export function ClearFilters({ filters }: { filters: Pick<Filters<string>, 'isFiltered' | 'clear'> }) {
  return filters.isFiltered && <ActionButton label="Clear" variant="subtle" change={{ mutate: filters.clear }} />;
}
