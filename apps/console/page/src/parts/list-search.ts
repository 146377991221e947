/** Remembers the filters of each list while the page is open, so that a link back to a list shows it as it was. */

const searches = new Map<string, string>();

/** Remembers the search part of a list's URL. */
export function rememberSearch(path: string, search: string): void {
  searches.set(path, search);
}

/** Returns the path of a list with the filters it had last. */
export function asLeft(path: string): string {
  return `${path}${searches.get(path) ?? ''}`;
}
