/** Awaits several values at once by name, where the order of `Promise.all` could be mistaken. */

/** Resolves to the object with each value awaited. Rejects with the first rejection, as `Promise.all` does. */
export async function awaitValues<T extends Record<string, unknown>>(
  values: T,
): Promise<{ [Name in keyof T]: Awaited<T[Name]> }> {
  const entries = await Promise.all(Object.entries(values).map(async ([name, value]) => [name, await value] as const));
  return Object.fromEntries(entries) as { [Name in keyof T]: Awaited<T[Name]> };
}
