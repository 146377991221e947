/** The filters of a list. They are kept in the URL, so that a link and the back button show the same list. */
import { Select, type SelectProps } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useLocation, useSearchParams } from 'react-router';
import { ActionButton } from './action-button.tsx';
import { AddressPicker } from './address-picker.tsx';
import { rememberSearch } from './list-search.ts';

type Filters<N extends string> = ReturnType<typeof useFilters<N>>;

/** Orders a list, and leaves nothing out: "Clear" keeps it. */
const ORDER = 'sort';

/** A change adds no entry to the browser history. */
export function useFilters<N extends string>(names: readonly N[]) {
  const [search, setSearch] = useSearchParams();
  const { pathname, search: text } = useLocation();
  const [timesCleared, setTimesCleared] = useState(0);
  useEffect(() => rememberSearch(pathname, text), [pathname, text]);
  const setAll = (values: Partial<Record<N, string | null>>): void => {
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
    setAll,
    set: (name: N, value: string | null) => setAll({ [name]: value } as Partial<Record<N, string | null>>),
    /** Clears these filters, and nothing else that the URL has. */
    clear: () => {
      setTimesCleared(timesCleared + 1);
      setAll(Object.fromEntries(clearable.map((name) => [name, null])) as Partial<Record<N, null>>);
    },
    /** The key of a field that may have text that is not in the URL yet: clearing the filters makes it a new field. */
    timesCleared,
  };
}

/** The width of a filter in pixels; on narrow screens two filters share a line. */
export const filterWidth = (widthPx: number) => ({ base: 'calc(50% - 6px)', xs: widthPx });

interface SelectFilterProps<N extends string> extends Pick<SelectProps, 'data' | 'searchable'> {
  filters: Filters<N>;
  name: N;
  label: string;
  /** Other filters that a change sets. */
  also?: Partial<Record<N, string | null>>;
  widthPx: number;
}

/** Filters a list by one value of a field, or by none. */
export function SelectFilter<N extends string>(props: SelectFilterProps<N>) {
  const { filters, name, label, also, widthPx, ...select } = props;
  return (
    <Select<string>
      aria-label={label}
      placeholder={`Any ${label.toLowerCase()}`}
      value={filters.filter[name]}
      onChange={(value) => filters.setAll({ ...also, [name]: value } as Partial<Record<N, string | null>>)}
      clearable
      w={filterWidth(widthPx)}
      {...select}
    />
  );
}

/** Filters a list by its subscription. */
export function AddressFilter({ filters }: { filters: Filters<'subscription_id'> }) {
  return (
    <AddressPicker
      aria-label="Address"
      placeholder="Any address"
      value={filters.filter.subscription_id}
      onChange={(id) => filters.set('subscription_id', id)}
      clearable
      w={filterWidth(290)}
    />
  );
}

/** Clears all filters of a list, if there are any. */
export function ClearFilters({ isFiltered, clear }: Pick<Filters<string>, 'isFiltered' | 'clear'>) {
  if (!isFiltered) return null;
  return <ActionButton label="Clear" variant="subtle" change={{ mutate: clear }} />;
}
