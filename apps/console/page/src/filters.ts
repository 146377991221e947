/** Keeps the filters of a list in the URL, so that a link and the back button show the same list. */
import { useSearchParams } from 'react-router';

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
