/** The filters of a list. They are kept in the URL, so that a link and the back button show the same list. */
import { Select, type SelectProps } from '@mantine/core';
import { useSearchParams } from 'react-router';
import { useUrls } from '../queries.ts';

type Filters<N extends string> = ReturnType<typeof useFilters<N>>;

/** With `replace`, a change adds no entry to the browser history. */
export function useFilters<N extends string>(names: readonly N[], replace = true) {
  const [search, setSearch] = useSearchParams();
  return {
    filter: Object.fromEntries(names.map((name) => [name, search.get(name)])) as Record<N, string | null>,
    set(name: N, value: string | null): void {
      setSearch(
        (now) => {
          if (value) now.set(name, value);
          else now.delete(name);
          return now;
        },
        { replace },
      );
    },
    clear: () => setSearch({}, { replace }),
  };
}

/** The width of a filter in pixels; on narrow screens two filters share a line. */
export const filterWidth = (widthPx: number) => ({ base: 'calc(50% - 6px)', xs: widthPx });

interface SelectFilterProps<N extends string> extends Pick<SelectProps, 'data' | 'searchable'> {
  filters: Filters<N>;
  name: N;
  label: string;
  widthPx: number;
}

/** Filters a list by one value of a field, or by none. */
export function SelectFilter<N extends string>({ filters, name, label, widthPx, ...select }: SelectFilterProps<N>) {
  return (
    <Select<string>
      aria-label={label}
      placeholder={`Any ${label.toLowerCase()}`}
      value={filters.filter[name]}
      onChange={(value) => filters.set(name, value)}
      clearable
      w={filterWidth(widthPx)}
      {...select}
    />
  );
}

/** Filters a list by its subscription. A chosen subscription that is not among the newest is shown by its id. */
export function AddressFilter({ filters }: { filters: Filters<'subscription_id'> }) {
  const urls = useUrls();
  const chosen = filters.filter.subscription_id;
  const ids = chosen === null || urls.has(chosen) ? [...urls.keys()] : [...urls.keys(), chosen];
  const data = ids.map((value) => ({ value, label: urls.get(value) ?? value }));
  return <SelectFilter filters={filters} name="subscription_id" label="Address" data={data} searchable widthPx={290} />;
}
