/**
 * Limits what each publisher has in flight to Redis. Redis takes commands in the order in which they come, so everything that one publisher has sent there
 * delays all others, and the readiness check.
 */
import { StorageUnavailable } from '@posthorn/core';

/** Deliveries, or as much work: 10 to 20 milliseconds of Redis. More would not make ingest faster while Redis replies within some milliseconds. */
const MAX_IN_FLIGHT = 500;

interface Line {
  inFlight: number;
  waiting: { weight: number; begin: () => void; reject: (error: unknown) => void }[];
}

export class InFlight {
  readonly #lines = new Map<string, Line>();

  /**
   * Calls `run` as soon as what is in flight in this line leaves room for `weight` deliveries; at once if there is nothing. Calls of a line run in order.
   * Where one fails since Redis is unavailable, those that wait fail with it: each would take as long to find out.
   */
  async within<T>(name: string, weight: number, run: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(name) ?? { inFlight: 0, waiting: [] };
    this.#lines.set(name, line);
    if (hasRoom(line, weight) && line.waiting.length === 0) line.inFlight += weight;
    else await new Promise<void>((begin, reject) => line.waiting.push({ weight, begin, reject }));
    try {
      return await run();
    } catch (error) {
      if (error instanceof StorageUnavailable) for (const { reject } of line.waiting.splice(0)) reject(error);
      throw error;
    } finally {
      line.inFlight -= weight;
      beginNext(line);
    }
  }
}

function hasRoom({ inFlight }: Line, weight: number): boolean {
  return inFlight === 0 || inFlight + weight <= MAX_IN_FLIGHT;
}

function beginNext(line: Line): void {
  for (let next = line.waiting[0]; next && hasRoom(line, next.weight); next = line.waiting[0]) {
    line.waiting.shift();
    line.inFlight += next.weight;
    next.begin();
  }
}
