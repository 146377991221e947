/**
 * Limits what each publisher has in flight to Redis. Redis takes commands in the order in which they come, so
 * everything that one publisher has sent there delays all others, and the readiness check.
 */
import { knownOrNew, StorageUnavailable } from '@posthorn/core';

/**
 * Deliveries, or as much work: 10 to 20 milliseconds of Redis. More would not make ingest faster while Redis replies
 * within some milliseconds.
 */
const MAX_IN_FLIGHT = 500;

/**
 * Limits what one publisher has in flight to one partition, or to all of them if one Redis has them all. First in,
 * first out.
 */
class Line {
  #inFlight = 0;
  readonly #waiting: { weight: number; begin: () => void; reject: (error: unknown) => void }[] = [];

  /**
   * Returns undefined if this many deliveries may be sent now, or else a promise that resolves when they may. Then call
   * `end`, and `fail` before it after an error.
   */
  begin(weight: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#hasRoom(weight)) {
      this.#inFlight += weight;
      return undefined;
    }
    return new Promise((begin, reject) => this.#waiting.push({ weight, begin, reject }));
  }

  /** If Redis is unavailable, rejects those that wait too: each would take as long to fail by itself. */
  fail(error: unknown): void {
    if (error instanceof StorageUnavailable) for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  end(weight: number): void {
    this.#inFlight -= weight;
    for (let next = this.#waiting[0]; next && this.#hasRoom(next.weight); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#inFlight += next.weight;
      next.begin();
    }
  }

  /** If nothing is in flight, any weight may begin. */
  #hasRoom(weight: number): boolean {
    return this.#inFlight === 0 || this.#inFlight + weight <= MAX_IN_FLIGHT;
  }
}

export class InFlight {
  /** By publisher and partition. */
  readonly #lines = new Map<string, Line[]>();

  lineOf(publisher: string, partition: number): Line {
    const lines = knownOrNew(this.#lines, publisher, () => []);
    lines[partition] ??= new Line();
    return lines[partition];
  }
}
