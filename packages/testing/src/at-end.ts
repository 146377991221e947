/** What a test has started, and is ended after it. */
import { afterEach } from '@jest/globals';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Registers a function to call after the test. Those that are registered last are called first. */
export function atEnd(end: () => unknown): void {
  ends.push(end);
}
