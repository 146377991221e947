/**
 * What one process knows about the record of the installation: it reads it when it starts, registers what it can read,
 * and repeats both every few seconds. docs/architecture.md has the reasons.
 */
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import {
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  StartError,
  StorageUnavailable,
  TimeLimitExceeded,
  withTimeLimit,
} from '@posthorn/core';
import { Cluster } from 'ioredis';
import { allPrefixes, installationKey } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { type AgreedSettings, createSettingsComparison } from './differing-settings.ts';
import { describeMismatch, FIRST_FORMAT, type FormatRange, PROCESS_FIELD } from './formats.ts';
import { createLostPartitions, type LostPartitions } from './lost-partitions.ts';

/** The exit code of a process that can't read the stored format: EX_CONFIG of sysexits.h. No restart helps. */
const EXIT_MISMATCH = 78;
const REFRESH_EVERY_MS = 5_000;
/** Redis hangs if it does not reply in this time. The connection notices only after 20 s. */
const SILENT_MS = 3_000;
/**
 * What a process knows about the format is valid for this long; then it asks before it runs a script. Must be far below
 * `GONE_AFTER_MS`.
 */
const TRUST_MS = 30_000;
/**
 * How far the clock of this process may differ from that of Redis, which lets things expire at the times that this
 * process sets: at a whole retention behind, they would have expired when they are stored.
 */
const maxDifferenceMs = (retentionMs: number) => Math.min(DAY_MS, Math.max(MINUTE_MS, retentionMs / 2));

/** How a process registers. */
export interface ProcessIdentity {
  /** Unique for each process. */
  id: string;
  /** `ingest`, `worker` or `console`. */
  app: string;
  /** Its release. */
  version: string;
}

/** What everything else needs to know of it. */
export type StoredFormat = Pick<KnownFormat, 'current' | 'confirm' | 'doubt'>;

interface FormatOptions {
  readable: FormatRange;
  identity: ProcessIdentity | undefined;
  /** Called once if this process can't work with what is stored any more. */
  onMismatch: (error: StartError) => void;
  /**
   * Called each time when Redis has lost the record, or the data of a partition, and once for each other value of
   * `settings` that a running process has.
   */
  onWarning: (text: string) => void;
  settings: AgreedSettings;
}

/**
 * The stored format as one process knows it. A process without an identity (a tool, a test) is not registered, and
 * reads the format once.
 */
export class KnownFormat {
  readonly #store: Pick<Store, 'redis' | 'prefix' | 'partitions' | 'retentionMs'>;
  readonly #options: FormatOptions;
  readonly #compareSettings: ReturnType<typeof createSettingsComparison>;
  readonly #lostPartitions: LostPartitions;
  readonly #leaving = new AbortController();
  #current = FIRST_FORMAT;
  #confirmedAtMs = Number.NEGATIVE_INFINITY;
  #doubts = 0;
  /** When the installation began that this process has joined, as its record says. */
  #begunAt: string | undefined;
  #isGone = false;
  #mismatch: StartError | undefined;
  #refreshing: Promise<void> | undefined;

  constructor(store: Pick<Store, 'redis' | 'prefix' | 'partitions' | 'retentionMs'>, options: FormatOptions) {
    this.#store = store;
    this.#options = options;
    this.#compareSettings = createSettingsComparison(store, options.settings, options.onWarning);
    this.#lostPartitions = createLostPartitions(store);
  }

  /** The format to write. Everything that this process may find can be older, or newer up to what it reads. */
  current(): number {
    return this.#current;
  }

  /**
   * Undefined while what is known is recent. Otherwise resolves once it is, and rejects if this process can't read what
   * is stored, or Redis has lost it. `prefix`: that of the partition to be used.
   */
  confirm(prefix?: string): Promise<void> | undefined {
    if (this.#options.identity === undefined) return undefined;
    // Also after the clock was set back.
    if (Math.abs(Date.now() - this.#confirmedAtMs) < TRUST_MS) return this.#confirmPartition(prefix);
    return this.#refreshOnce().then(() => this.#confirmPartition(prefix));
  }

  #confirmPartition(prefix: string | undefined): Promise<void> | undefined {
    return prefix === undefined
      ? undefined
      : this.#lostPartitions.isLost(prefix)?.then((isLost) => {
          if (isLost) this.#refusePartitions([allPrefixes(this.#store).indexOf(prefix)]);
        });
  }

  /**
   * To be called when Redis is reached again: it may be another server, or have other data. What is being read was
   * asked before that, and confirms nothing any more.
   */
  doubt(): void {
    this.#doubts++;
    this.#confirmedAtMs = Number.NEGATIVE_INFINITY;
    this.#refreshing = undefined;
  }

  /** To be called when a server of a Cluster is reached again: each partition is looked at before it is used. */
  doubtPartitions(): void {
    this.#lostPartitions.doubt();
  }

  /**
   * Creates or reads the record of the installation and registers the process. Returns whether this process has
   * created the record of an empty installation beside other keys. Throws `StartError` if this process
   * can't read what is stored, or has another number of partitions: it decides where each key is stored, the first
   * process to start sets it, and it can't change while there are keys. Throws `StorageUnavailable` while its clock is
   * far off, or Redis has lost the record or the data of a partition, or has later ones: whatever was accepted then
   * would match nobody.
   */
  async join(isEmpty = false): Promise<boolean> {
    const { redis, prefix, partitions, retentionMs } = this.#store;
    const { identity, readable } = this.#options;
    const version = identity?.version ?? '';
    const sentAtMs = Date.now();
    const doubts = this.#doubts;
    const found = await runScript({ redis }, 'joinInstallation', installationKey(prefix), {
      id: identity?.id,
      state: this.#state(),
      isEmpty,
      known: this.#begunAt,
      partitions,
      version,
      ...readable,
    });
    if (found === undefined) this.#refuse(`the record of this installation (${installationKey(prefix)})`);
    const aheadMs = Date.now() - found.redisMs;
    if (Math.abs(aheadMs) > maxDifferenceMs(retentionMs)) {
      const [unit, unitMs] = Math.abs(aheadMs) < 2 * HOUR_MS ? ['minutes', MINUTE_MS] : ['hours', HOUR_MS];
      const difference = `${Math.round(Math.abs(aheadMs) / unitMs)} ${unit} ${aheadMs > 0 ? 'ahead of' : 'behind'} that of Redis`;
      const what = aheadMs > 0 ? 'what is held or waits for a retry would be due' : 'what it stores would expire';
      throw new StorageUnavailable(`the clock of this process is ${difference}, so ${what} too soon`);
    }
    const reason = describeMismatch(found, readable, { prefix, version });
    if (reason !== undefined) this.#mismatch = new StartError(reason, EXIT_MISMATCH);
    else if (found.partitions !== partitions)
      this.#mismatch = new StartError(
        `PARTITIONS is ${partitions}, but the data under KEY_PREFIX "${prefix}" was written with ${found.partitions}. ` +
          `Set PARTITIONS=${found.partitions}, or choose another KEY_PREFIX.`,
      );
    if (this.#mismatch) throw this.#mismatch;
    // On one Redis, what has lost a partition has lost the record too.
    const lost = redis instanceof Cluster ? await this.#lostPartitions.find() : [];
    if (lost.length > 0) this.#refusePartitions(lost);
    this.#current = found.format;
    this.#begunAt = found.begunAt;
    this.#isGone = false;
    if (doubts === this.#doubts) this.#confirmedAtMs = sentAtMs;
    if (identity !== undefined) await this.#compareSettings(found.registrations);
    return found.hasOthers;
  }

  #refusePartitions(lost: readonly number[]): never {
    return this.#refuse(`the data of partitions ${lost.join(', ')} of ${this.#store.partitions}`);
  }

  #refuse(what: string): never {
    const reason =
      `Redis has lost ${what}: it was emptied, or another server took its place. Nothing is accepted or delivered until ` +
      'the data are back: start Redis on the right folder, or restore a backup (docs/redis.md). Start or restart no app ' +
      'before that. To begin without the data, restart all apps.';
    this.doubt();
    if (!this.#isGone) this.#options.onWarning(reason);
    this.#isGone = true;
    throw new StorageUnavailable(reason);
  }

  /**
   * Repeats `join` every few seconds until `leave`, or until this process can't work with what is stored. `onError`
   * also learns of a Redis that does not reply.
   */
  async keepUp(onError: (error: Error) => void): Promise<void> {
    while (this.#options.identity !== undefined && this.#mismatch === undefined) {
      await wait(REFRESH_EVERY_MS, undefined, { signal: this.#leaving.signal, ref: false }).catch(() => undefined);
      if (this.#leaving.signal.aborted) return;
      await withTimeLimit(SILENT_MS, this.#refreshOnce()).catch((error: Error) => {
        if (error instanceof TimeLimitExceeded)
          onError(new StorageUnavailable(`No reply within ${SILENT_MS / 1000} s`));
        // The connection reports all else by which Redis is unavailable.
        else if (!(error instanceof StartError || error instanceof StorageUnavailable)) onError(error);
      });
    }
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    if (this.#options.identity === undefined || this.#mismatch !== undefined) return;
    const { redis, prefix } = this.#store;
    // A process that can't say goodbye is gone after a while.
    await redis.hdel(installationKey(prefix), PROCESS_FIELD + this.#options.identity.id).catch(() => undefined);
  }

  #refreshOnce(): Promise<void> {
    if (this.#refreshing) return this.#refreshing;
    const refreshing = this.#refresh().finally(() => {
      if (this.#refreshing === refreshing) this.#refreshing = undefined;
    });
    this.#refreshing = refreshing;
    return refreshing;
  }

  async #refresh(): Promise<void> {
    if (this.#mismatch) throw this.#mismatch;
    try {
      await this.join();
    } catch (error) {
      if (error instanceof StartError) this.#options.onMismatch(error);
      throw error;
    }
  }

  /** What other processes learn of this one. */
  #state(): string {
    const { identity, settings, readable } = this.#options;
    const { app, version } = identity ?? {};
    return JSON.stringify({ app, version, host: hostname(), pid: process.pid, settings, ...readable });
  }
}
