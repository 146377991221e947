/**
 * Limits the time for which failing TLS handshakes with one host block the event loop. Before Node can refuse a
 * certificate, OpenSSL verifies its whole chain in one go: up to a hundred certificates, with keys that a receiver can
 * make as slow as it likes.
 */
import { atMost } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import { resultOfError, type SendOutcome } from './result.ts';

/** While a handshake is in progress, interval of the checks whether the event loop was blocked. */
const TICK_MS = 10;
/** A shorter block is ordinary: a usual handshake takes 2 ms of CPU, and other work has turns of some milliseconds. */
const MIN_BLOCKED_MS = 50;
/**
 * A failed handshake that blocked the event loop is followed by a pause that is this many times as long, for each host
 * that pauses: many costly hosts, for example the names of one server, take as little time as one.
 */
const PAUSE_FACTOR = 100;
const MAX_PAUSE_MS = 300_000;
const MAX_HOSTS = 1_000;

/** Why a handshake failed, and with which IP. */
interface Failure {
  error: Error;
  ip: string | null;
}

interface Pause {
  failure: Failure;
  untilMs: number;
  /** Whether the pause is over and one handshake is tried, which decides about the next ones. */
  isTried: boolean;
}

/**
 * A handshake in progress. `hasCertificate`: whether the certificates of the other side were verified. It is not called
 * again after it has returned true: Node takes 6 ms to read a certificate with 15,000 names.
 */
export interface Handshake {
  readonly host: string;
  blockedMs: number;
  isVerified: boolean;
  readonly abort: (error: Error) => void;
  readonly hasCertificate: () => boolean;
}

export type CostlyHandshakes = ReturnType<typeof createCostlyHandshakes>;

/**
 * `now` is a monotonic clock in milliseconds. `cpuNow` is the CPU time of this thread: a process that is suspended or
 * waits for a core has not been blocked by a handshake.
 */
export function createCostlyHandshakes(now: () => number, cpuNow = threadCpuMs) {
  const pauses = new LRUCache<string, Pause>(atMost(MAX_HOSTS));
  const inProgress = new Set<Handshake>();
  let lookedAtCpuMs = 0;
  let ticks: NodeJS.Timeout | undefined;
  /**
   * Adds a block of the event loop to every handshake in progress that may have caused it: not to those that wait for
   * the other side, which may hang.
   */
  const look = () => {
    const cpuMs = cpuNow();
    const turnMs = cpuMs - lookedAtCpuMs;
    lookedAtCpuMs = cpuMs;
    if (turnMs < MIN_BLOCKED_MS) return;
    for (const handshake of inProgress) {
      handshake.isVerified ||= handshake.hasCertificate();
      if (handshake.isVerified) handshake.blockedMs += turnMs;
    }
  };

  const pausedHosts = () => {
    let hosts = 0;
    for (const { untilMs } of pauses.values()) if (now() < untilMs) hosts += 1;
    return hosts;
  };

  return {
    /** While handshakes with a host pause, returns the outcome of an attempt that may not connect to it. */
    refusal(host: string): SendOutcome | undefined {
      const pause = pauses.get(host);
      if (!pause) return undefined;
      const { failure, untilMs, isTried } = pause;
      if (now() < untilMs || isTried) return resultOfError(failure.error, failure.ip);
      pause.isTried = true;
      return undefined;
    },
    /** Begins a handshake. `abort` is called with an error if another handshake with the host begins a pause. */
    begin(host: string, { abort, hasCertificate }: Pick<Handshake, 'abort' | 'hasCertificate'>): Handshake {
      look();
      const handshake = { host, blockedMs: 0, isVerified: false, abort, hasCertificate };
      inProgress.add(handshake);
      ticks ??= setInterval(look, TICK_MS).unref();
      // This connection was being opened when the pause began.
      const pause = pauses.get(host);
      if (pause && now() < pause.untilMs) abort(pause.failure.error);
      return handshake;
    },
    /** Ends a handshake, with a failure if it has not succeeded. To be called once. */
    end(handshake: Handshake, failure: Failure | undefined): void {
      look();
      inProgress.delete(handshake);
      if (inProgress.size === 0) {
        clearInterval(ticks);
        ticks = undefined;
      }
      const { host, blockedMs } = handshake;
      if (failure && blockedMs > 0) {
        pauses.delete(host);
        const untilMs = now() + Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * blockedMs * (1 + pausedHosts()));
        pauses.set(host, { failure, untilMs, isTried: false });
        // The certificates of other handshakes may have arrived: each would be verified in the same way.
        for (const other of inProgress) if (other.host === host) other.abort(failure.error);
      } else if (now() >= (pauses.get(host)?.untilMs ?? 0)) pauses.delete(host);
    },
    /**
     * A connection failed before its handshake. If it was the one to try after a pause, the next attempt tries instead.
     */
    notBegun(host: string): void {
      const pause = pauses.get(host);
      if (pause) pause.isTried = false;
    },
  };
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
