/** Parts beside the pages, whose code is loaded after the first paint. The code of a page is left to routes.ts. */
import { type ComponentType, lazy } from 'react';

const RETRY_MS = 2_000;

/**
 * Returns the component of a part. Until its code can be loaded, which is tried again and again, the rest is shown
 * without it.
 */
export function lazyPart<P = object>(load: () => Promise<ComponentType<P>>) {
  return lazy<ComponentType<P>>(async () => {
    for (;;) {
      try {
        return { default: await load() };
      } catch {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  });
}
