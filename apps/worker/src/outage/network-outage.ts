/**
 * Distinguishes an outage of this process's own network or name resolution from failures of receivers. docs/decisions
 * (32) says how, and which side gets the benefit of the doubt.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { withTimeLimit } from '@posthorn/core';
import { MAX_LOOKUP_MS, type Probe, type ProbeResult, type SendResult } from '@posthorn/sender';
import { domainOf, networkOf, type ReachedSites, type Site, type SiteKind } from './reached-sites.ts';

export interface Outage {
  /** What fails: name resolution, or connections. */
  kind: SiteKind;
  startedAtMs: number;
}

export interface OutageOptions {
  sites: ReachedSites;
  probe: Probe;
  /** Attempts in flight. */
  inFlight: () => number;
  /** Milliseconds since 1970. */
  now: () => number;
  onStart: (outage: Outage) => void;
  onEnd: (outage: Outage, endedAtMs: number) => void;
  /** Called for each attempt for which there was no socket. */
  onNoSocket: (code: string) => void;
  /** URLs to probe during an outage besides the remembered sites. */
  moreUrls: () => Promise<string[]>;
  /** A monotonic clock, in milliseconds. */
  elapsedMs: () => number;
}

/** With fewer other sites to probe, an outage can't be distinguished from failures of receivers. */
const MIN_WITNESSES = 3;
const MAX_PROBED = 20;
const PROBED_FIRST = 5;
/** How many addresses that responded are remembered, to be probed as well before an outage is believed. */
const MAX_RESPONDED = 20;
/** Time between two rounds of probes. */
const ROUND_GAP_MS = 500;
/** How long the first probes of a round run before the others start. */
const HEAD_START_MS = 500;
/** With attempts in flight, this long without any response or connection starts a round of probes. */
const SILENCE_MS = 4_000;
/** During an outage, every 30th check also probes other subscriptions: the remembered sites may be gone for good. */
const CHECKS_BETWEEN_MORE_URLS = 30;
/** They are read from Redis, which may not reply during an outage. The next checks must not wait for it. */
const MAX_WAIT_FOR_MORE_URLS_MS = 2_000;

/** Connection errors not caused by the receiver. */
const UNREACHED = new Set([
  'ETIMEDOUT',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENETDOWN',
  'EHOSTDOWN',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
]);

/** This process or its machine can open no more sockets. The receiver saw nothing, even if other sites are reached. */
const NO_SOCKET = new Set(['EMFILE', 'ENFILE', 'ENOBUFS']);

/** What proves after a failure that the network works: a resolved name, a new connection, or any response. */
type Evidence = SiteKind | 'response';

/** A failed attempt whose cause is not known yet. */
interface Doubt {
  needs: Evidence;
  /** The kind of sites that are probed to settle it. */
  kind: SiteKind;
  /** The group of the failed site, which can't be a witness. */
  group: string;
  decide: (isOurs: boolean) => void;
}

/** What one worker knows of its own network. */
export class Outages {
  readonly #options: OutageOptions;
  readonly #doubts = new Set<Doubt>();
  /** Kinds with a round in progress. */
  readonly #rounds = new Set<SiteKind>();
  readonly #roundEndedAtMs = { dns: Number.NEGATIVE_INFINITY, connection: Number.NEGATIVE_INFINITY };
  /** For each kind of outage, resolves at the next evidence that would end it. */
  readonly #nextEvidence = { dns: newEvidence(), connection: newEvidence() };
  /**
   * URLs that responded lately. They keep their connections, so hundreds of receivers that do not would be all of the
   * remembered sites, and would be taken for an outage if they failed together.
   */
  readonly #responded: string[] = [];
  #outage: Outage | undefined;
  /** When the last outage ended, by `elapsedMs`. */
  #endedAfterMs = Number.NEGATIVE_INFINITY;
  /** When a response or connection was seen last, or nothing was in flight, by `elapsedMs`. */
  #heardAtMs: number;
  #checks = 0;

  constructor(options: OutageOptions) {
    this.#options = options;
    this.#heardAtMs = options.elapsedMs();
  }

  /** The current outage of this process. During an outage no attempt may begin. */
  current(): Outage | undefined {
    return this.#outage;
  }

  /**
   * When the last outage of this process ended, in milliseconds since 1970 by the clock as it is now; 0 if there was
   * none. A clock is often set right when the network is back: by the time that it showed at the end, everything that
   * is due until then again would be overdue.
   */
  endedAtMs(): number {
    return Math.max(0, Math.floor(this.#options.now() - this.#sinceEndMs()));
  }

  /** DNS has returned addresses of a name. */
  resolved(hostname: string): void {
    this.#options.sites.resolved(hostname, this.#options.now());
    this.#prove('dns');
  }

  /** A connection was established or refused by the host. */
  connected(origin: string, ip: string): void {
    this.#options.sites.connected(origin, ip, this.#options.now());
    this.#prove('connection');
  }

  /**
   * Whether an attempt failed because of an outage, or because this process has no socket for it: then it must not be
   * counted. Returns a promise only if the result leaves the cause open: the name did not resolve, no connection was
   * established, or no response came in time. It resolves when another site was reached, or when the probes have ended.
   * `startedAtMs`: when the attempt began. A failure whose cause is open and that began before the end of an outage is
   * caused by that outage.
   */
  isOurs(result: SendResult, url: string, startedAtMs: number): boolean | Promise<boolean> {
    if (result.kind === 'connection_failed' && NO_SOCKET.has(result.detail)) {
      this.#options.onNoSocket(result.detail);
      return true;
    }
    const needs = neededEvidence(result);
    if (needs === undefined) {
      if (result.kind === 'responded') {
        this.#noteResponded(url);
        this.#prove('response');
      } else if (result.kind === 'connection_failed' && result.detail === 'ECONNREFUSED') {
        this.connected(new URL(url).origin, result.ip ?? '');
      }
      return false;
    }
    if (this.#outage || startedAtMs <= this.endedAtMs()) return true;
    // An attempt shares a lookup in progress, such as that of a probe, which may have begun during the outage.
    if (needs === 'dns' && this.#sinceEndMs() <= MAX_LOOKUP_MS) return true;
    const kind = needs === 'dns' ? 'dns' : 'connection';
    const group = kind === 'dns' ? domainOf(new URL(url).hostname) : networkOf(result.ip ?? '');
    const witnesses = this.#options.sites.pick(kind, MIN_WITNESSES + 1).filter((site) => site.group !== group);
    if (witnesses.length < MIN_WITNESSES) return false;
    return new Promise((decide) => {
      this.#doubts.add({ needs, kind, group, decide });
      void this.#runRounds(kind);
    });
  }

  /** Detects silence, and probes whether an outage is over. To be called every second. */
  async check(): Promise<void> {
    if (this.#outage) return await this.#probeForEnd(this.#outage);
    const { inFlight, elapsedMs } = this.#options;
    this.#checks = 0;
    if (inFlight() === 0) this.#heardAtMs = elapsedMs();
    else if (elapsedMs() - this.#heardAtMs > SILENCE_MS) void this.#runRounds('connection', true);
  }

  /** The time since the end of the last outage; infinite if there was none. */
  #sinceEndMs(): number {
    return this.#options.elapsedMs() - this.#endedAfterMs;
  }

  /** Replaces one at random: addresses that respond less often than others are not all replaced at once. */
  #noteResponded(url: string): void {
    const isFull = this.#responded.length === MAX_RESPONDED;
    this.#responded[isFull ? Math.floor(Math.random() * MAX_RESPONDED) : this.#responded.length] = url;
  }

  #start(kind: SiteKind): void {
    if (this.#outage) return;
    this.#outage = { kind, startedAtMs: this.#options.now() };
    this.#options.onStart(this.#outage);
    for (const doubt of this.#doubts) this.#settle(doubt, true);
  }

  #end(ended: Outage): void {
    const { now, elapsedMs, onEnd } = this.#options;
    this.#outage = undefined;
    this.#endedAfterMs = elapsedMs();
    onEnd(ended, now());
  }

  #prove(evidence: Evidence): void {
    if (evidence !== 'dns') this.#heardAtMs = this.#options.elapsedMs();
    if (evidence !== 'response') {
      this.#nextEvidence[evidence].resolve('nothing');
      this.#nextEvidence[evidence] = newEvidence();
      if (this.#outage?.kind === evidence) this.#end(this.#outage);
    }
    for (const doubt of this.#doubts) {
      const isProof = evidence === doubt.needs || (evidence === 'connection' && doubt.needs === 'response');
      if (isProof) this.#settle(doubt, false);
    }
  }

  #settle(doubt: Doubt, isOurs: boolean): void {
    this.#doubts.delete(doubt);
    doubt.decide(isOurs);
  }

  #doubtsOf(kind: SiteKind): Doubt[] {
    return [...this.#doubts].filter((doubt) => doubt.kind === kind);
  }

  /** Runs one round per kind at a time. A doubt that came too late for a round starts the next one. */
  async #runRounds(kind: SiteKind, isSilent = false): Promise<void> {
    if (this.#rounds.has(kind)) return;
    this.#rounds.add(kind);
    await this.#runRound(kind, isSilent);
    this.#rounds.delete(kind);
    if (this.#doubtsOf(kind).length > 0) void this.#runRounds(kind);
  }

  async #runRound(kind: SiteKind, isSilent: boolean): Promise<void> {
    const { sites, elapsedMs } = this.#options;
    const gapMs = this.#roundEndedAtMs[kind] + ROUND_GAP_MS - elapsedMs();
    if (gapMs > 0) await wait(gapMs);
    if (this.#doubtsOf(kind).length === 0 && !isSilent) return;
    const picked = sites.pick(kind, MAX_PROBED);
    const failed = picked.length < MIN_WITNESSES ? 'unknown' : await this.#probeSites(kind, picked);
    this.#roundEndedAtMs[kind] = elapsedMs();
    // The evidence has settled all earlier doubts.
    if (failed === 'nothing') return;
    for (const doubt of this.#doubtsOf(kind)) {
      const witnesses = picked.filter(({ group }) => group !== doubt.group).length;
      if (failed === 'unknown' || witnesses < MIN_WITNESSES) this.#settle(doubt, false);
    }
    // An outage settles the doubts that are left.
    if (failed !== 'unknown' && (isSilent || this.#doubtsOf(kind).length > 0)) this.#start(failed);
  }

  /**
   * Probes some sites, then more and what responded lately, until there is evidence or all have failed. Resolves to
   * what fails: `nothing` if there was evidence, `unknown` if fewer than `MIN_WITNESSES` probes of sites say what
   * fails.
   */
  async #probeSites(kind: SiteKind, picked: readonly Site[]): Promise<SiteKind | 'nothing' | 'unknown'> {
    const evidence = this.#nextEvidence[kind].promise;
    const results = picked.slice(0, PROBED_FIRST).map((site) => this.#probe(site));
    const headStart = wait(HEAD_START_MS, undefined, { ref: false });
    if ((await Promise.race([evidence, Promise.all(results), headStart])) === 'nothing') return 'nothing';
    results.push(...picked.slice(PROBED_FIRST).map((site) => this.#probe(site)));
    const ended = await Promise.race([evidence, Promise.all([...results, ...this.#probeUrls(kind, this.#responded)])]);
    if (ended === 'nothing') return 'nothing';
    const failed = ended.slice(0, picked.length).filter((result) => result === 'dns' || result === 'connection');
    if (failed.length < MIN_WITNESSES) return 'unknown';
    return failed.every((result) => result === 'dns') ? 'dns' : 'connection';
  }

  #probe({ kind, at }: Site): Promise<ProbeResult> {
    const { probe } = this.#options;
    return kind === 'dns' ? probe.name(at) : probe.host(at);
  }

  #probeUrls(kind: SiteKind, urls: Iterable<string>): Promise<ProbeResult>[] {
    const { probe } = this.#options;
    return [...new Set(urls)].map((url) => (kind === 'dns' ? probe.name(new URL(url).hostname) : probe.host(url)));
  }

  async #probeForEnd({ kind }: Outage): Promise<void> {
    const { sites, moreUrls } = this.#options;
    this.#checks += 1;
    const probes = sites.pick(kind, PROBED_FIRST).map((site) => this.#probe(site));
    probes.push(...this.#probeUrls(kind, this.#responded));
    if (this.#checks % CHECKS_BETWEEN_MORE_URLS === 0)
      probes.push(...this.#probeUrls(kind, await withTimeLimit(MAX_WAIT_FOR_MORE_URLS_MS, moreUrls())));
    // A probe that succeeds ends the outage through `resolved` or `connected`.
    await Promise.all(probes);
  }
}

function newEvidence() {
  return Promise.withResolvers<'nothing'>();
}

/** The evidence that would prove that the receiver caused the failure; undefined if the result itself proves it. */
function neededEvidence(result: SendResult): Evidence | undefined {
  if (result.kind === 'timed_out') return result.isConnected ? 'response' : 'connection';
  if (result.kind !== 'connection_failed') return undefined;
  if (result.error === 'dns') return 'dns';
  return UNREACHED.has(result.detail) ? 'connection' : undefined;
}
