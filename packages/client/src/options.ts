/** The options of a publisher: their limits and defaults. */

export interface PublisherOptions {
  /**
   * Where ingest is, such as `https://ingest.example`, or with a path before `/v1`. Several are used in turn when one
   * fails.
   */
  url: string | readonly string[];
  /** The publisher key. */
  key: string;
  /**
   * How long an event is repeated before `publish` rejects with `NotConfirmed`, in milliseconds. A call in flight ends
   * first.
   */
  giveUpAfterMs?: number | undefined;
  /** Time limit of one call, in milliseconds. */
  timeoutMs?: number | undefined;
  /** Events and bytes in memory at once; beyond them `publish` rejects with `QueueFull`. */
  maxEvents?: number | undefined;
  maxBytes?: number | undefined;
  /** Calls in flight at once. */
  concurrency?: number | undefined;
  /** Events of one call, at most 500. */
  maxBatch?: number | undefined;
  /** Hears of each call that failed and will be repeated, such as for a log: why, and in how many milliseconds. */
  onFailure?: ((failure: Error, retryInMs: number) => void) | undefined;
}

/** The options with their defaults. */
export type Settings = { [Name in Exclude<keyof PublisherOptions, 'url'>]-?: NonNullable<PublisherOptions[Name]> } & {
  urls: readonly string[];
};

/** Events of one call that ingest accepts. */
const MAX_BATCH = 500;
/** A longer timer would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Checks the options and adds the defaults. Throws `TypeError` for one that is not valid. */
export function settingsOf(options: PublisherOptions): Settings {
  const urls = [options.url].flat().map(baseUrl);
  if (urls.length === 0) throw new TypeError('A publisher needs a url.');
  const key = options.key?.trim();
  if (!key) throw new TypeError('A publisher needs a key.');
  if (!/^[\x20-\x7e]*$/.test(key)) throw new TypeError('The key has characters that no publisher key has.');
  const limits = {
    giveUpAfterMs: options.giveUpAfterMs ?? 600_000,
    timeoutMs: options.timeoutMs ?? 30_000,
    maxEvents: options.maxEvents ?? 10_000,
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
    concurrency: options.concurrency ?? 4,
    maxBatch: Math.min(options.maxBatch ?? MAX_BATCH, MAX_BATCH),
  };
  // With NaN, and mostly with 0, `publish` would never send an event, or never give it up.
  for (const [name, limit] of Object.entries(limits))
    if (!(limit > 0)) throw new TypeError(`The option ${name} of a publisher must be more than 0, not ${limit}.`);
  // `AbortSignal.timeout` throws for a part of a millisecond.
  const timeoutMs = Math.min(Math.ceil(limits.timeoutMs), MAX_TIMER_MS);
  return { ...limits, urls, key, timeoutMs, onFailure: options.onFailure ?? (() => {}) };
}

/**
 * Returns a url without a slash at its end. Throws `TypeError` if it is none of http or https, or has more than a path.
 */
function baseUrl(url: string): string {
  if (!/^https?:\/\/[^/]/i.test(url))
    throw new TypeError(`The url of a publisher begins with http:// or https://, not ${JSON.stringify(url)}.`);
  const { href, username, password, search, hash } = new URL(url);
  if (username || password || search || hash)
    throw new TypeError('The url of a publisher has no user, password, query or fragment.');
  return href.replace(/\/+$/, '');
}
