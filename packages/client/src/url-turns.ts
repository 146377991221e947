/**
 * Decides which of a publisher's urls gets the next call, and when: one whose call failed rests while others have
 * turns.
 */

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 30_000;
/** A longer `Retry-After` is a mistake, or that of another clock, and would stop the publisher for as long. */
const MAX_RETRY_AFTER_MS = 600_000;

export class UrlTurns {
  /** Each with the time before which it gets no call. */
  readonly #urls: { url: string; notBeforeMs: number }[];
  /** The first call of a turn that fails ends it. */
  #turn = 0;
  /** Turns in a row that have ended. */
  #failures = 0;

  constructor(urls: readonly string[]) {
    this.#urls = urls.map((url) => ({ url, notBeforeMs: 0 }));
  }

  /** The present turn, and the url of the calls that begin in it. */
  current(): { turn: number; url: string } {
    return { turn: this.#turn, url: this.#of(this.#turn).url };
  }

  /** The time that `failed` returned has passed, by a timer whose clock may differ. */
  resume(): void {
    this.#of(this.#turn).notBeforeMs = 0;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /**
   * A call that began in this turn has failed. Its url gets no other one before the time that its last `Retry-After`
   * asks for, whatever fails meanwhile; another url need not wait for that. Returns for how long, in milliseconds, no
   * call may begin.
   */
  failed(turn: number, retryAfterMs: number | undefined): number {
    const isFirst = turn === this.#turn;
    // Once for all that were in flight together: each would skip a url.
    if (isFirst) this.#failures += 1;
    const nowMs = performance.now();
    const pauseMs = pauseAfter(this.#failures);
    const failed = this.#of(turn);
    failed.notBeforeMs =
      retryAfterMs === undefined ? Math.max(failed.notBeforeMs, nowMs + pauseMs) : nowMs + spread(retryAfterMs);
    const waitMs = (next: number): number => {
      const url = this.#of(next);
      return Math.round(Math.max(url.notBeforeMs - nowMs, url === failed ? 0 : pauseMs));
    };
    if (isFirst) {
      // The next url in turn, unless another one may be called earlier.
      const turns = this.#urls.map((_, i) => turn + 1 + i);
      this.#turn = turns.reduce((best, next) => (waitMs(next) < waitMs(best) ? next : best));
    }
    return waitMs(this.#turn);
  }

  #of(turn: number): { url: string; notBeforeMs: number } {
    // The options have at least one url.
    return this.#urls[turn % this.#urls.length]!;
  }
}

/** The pause after so many failures in a row, in milliseconds. */
function pauseAfter(failures: number): number {
  return spread(Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20), MAX_PAUSE_MS) / 2);
}

/**
 * Adds up to as much again by chance, at most 15 seconds, so that many publishers do not come back at the same moment.
 */
function spread(leastMs: number): number {
  const spreadMs = Math.min(leastMs, MAX_PAUSE_MS / 2) * Math.random();
  return Math.round(Math.min(leastMs + spreadMs, MAX_RETRY_AFTER_MS));
}
