/** Interrupts work on many events, so that the other work of a process goes on. */
import { setImmediate } from 'node:timers/promises';

/** Parsing so many characters takes a few milliseconds. */
const CHARACTERS_AT_ONCE = 128 * 1024;

/** `before` is to be awaited before each event is parsed: it resolves later if those before were so many characters. */
export function createBreaks() {
  let characters = 0;
  return {
    async before(length: number): Promise<void> {
      if (characters + length > CHARACTERS_AT_ONCE && characters > 0) {
        await setImmediate();
        characters = 0;
      }
      characters += length;
    },
  };
}
