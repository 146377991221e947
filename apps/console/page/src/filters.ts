/** A list's filters, kept in the page's address, so that a link and the way back lead to the same list. */
import { useSearchParams } from 'react-router';

/** With `replace`, a change takes no step of its own on the way back. */
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
