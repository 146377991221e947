/** Names the record in the error of one that is not as it must be: the log of a call or a job has no key. */

/** The largest time that a `Date` can have, in milliseconds. */
const MAX_TIME_MS = 8.64e15;

/** The record of one `kind`, such as `delivery`, can't be read. */
export class UnreadableRecord extends Error {
  override name = 'UnreadableRecord';
  readonly id: string;
  readonly reason: string;
  /** The message without the reason, which may quote what is stored. */
  readonly summary: string;
  constructor(kind: string, id: string, cause: unknown) {
    // The message of JSON.parse quotes the text, which may be a payload: no log may have it.
    const isQuote = cause instanceof Error && cause.name === 'SyntaxError';
    const reason = isQuote ? 'one of its texts is no JSON' : cause instanceof Error ? cause.message : String(cause);
    const summary = `The record of ${kind} ${id} can't be read`;
    super(`${summary}: ${reason}`, isQuote ? {} : { cause });
    this.id = id;
    this.reason = reason;
    this.summary = summary;
  }
}

/**
 * Resolves as `reading` does, which reads a record. Throws `UnreadableRecord` if Redis refuses the command itself,
 * since another program has written the key; anything else as it is.
 */
export async function readNamed<T>(kind: string, id: string, reading: Promise<T>): Promise<T> {
  return await reading.catch((error: unknown) => {
    throw error instanceof Error && error.name === 'ReplyError' ? new UnreadableRecord(kind, id, error) : error;
  });
}

/**
 * Returns what `decode` returns. Throws `UnreadableRecord` if that throws, or if a number of it whose name ends with
 * `Ms` is no time: that would only be found where it is written as text.
 */
export function decodeNamed<T extends object | undefined>(kind: string, id: string, decode: () => T): T {
  try {
    const decoded = decode();
    if (decoded) checkTimes(decoded);
    return decoded;
  } catch (error) {
    throw new UnreadableRecord(kind, id, error);
  }
}

/**
 * Loads items; in place of each whose record can't be read, returns the error. Only for what shows items, or fails at
 * its end with the errors: other work on records lets `load` fail, so that none is passed over. Throws what else `load`
 * throws.
 */
export async function loadReadable<I, T>(
  load: (items: I[]) => Promise<(T | undefined)[]>,
  items: I[],
): Promise<(T | UnreadableRecord | undefined)[]> {
  const errorOf = (error: unknown): UnreadableRecord => {
    if (error instanceof UnreadableRecord) return error;
    throw error;
  };
  const all = await load(items).catch(errorOf);
  if (!(all instanceof UnreadableRecord)) return all;
  return await Promise.all(
    items.map((item) =>
      load([item])
        .then(([loaded]) => loaded)
        .catch(errorOf),
    ),
  );
}

/**
 * Loads items like `loadReadable`. Returns those that can be read, and adds the errors of the others to `unreadable`.
 */
export async function loadOthers<I, T>(
  load: (items: I[]) => Promise<(T | undefined)[]>,
  items: I[],
  unreadable: UnreadableRecord[],
): Promise<T[]> {
  const loaded = separate(await loadReadable(load, items));
  unreadable.push(...loaded.unreadable);
  return loaded.items;
}

/** Separates what `loadReadable` returns. */
export function separate<T>(loaded: readonly (T | UnreadableRecord | undefined)[]): {
  items: T[];
  unreadable: UnreadableRecord[];
} {
  return {
    items: loaded.filter((one): one is T => one !== undefined && !(one instanceof UnreadableRecord)),
    unreadable: loaded.filter((one) => one instanceof UnreadableRecord),
  };
}

/** The word of a list that a field of a record holds. Throws for any other, as of a newer release. */
export function wordOf<W extends string>(words: readonly W[], field: string, value: string | undefined): W {
  const word = words.find((each) => each === value);
  if (word === undefined) throw new Error(`its ${field} is ${value}`);
  return word;
}

/** Throws if a number of `decoded` whose name ends with `Ms` is no time. */
export function checkTimes(decoded: object): void {
  for (const [name, value] of Object.entries(decoded)) {
    if (typeof value === 'number' && name.endsWith('Ms') && !(Math.abs(value) <= MAX_TIME_MS))
      throw new Error(`its ${name} is ${value}`);
  }
}
