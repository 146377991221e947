/** Waits for something that another process brings about and gives no signal of. */

/** Asks again every 20 ms until `probe` answers something else than undefined or false; rejects after `limitMs` naming `what`. */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs = 15_000,
): Promise<T> {
  const endsAt = Date.now() + limitMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > endsAt) throw new Error(`Not in ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
