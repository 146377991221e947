/** Lists the problems that a schema finds in a value. */

interface Schema {
  safeParse(value: unknown): {
    success: boolean;
    error?: { issues: { path: PropertyKey[]; message: string }[] } | undefined;
  };
}

/**
 * Each problem as `path: message`, the path dotted from the top and blank for the value itself; none where the value is
 * valid.
 */
export function problemsOf(schema: Schema, value: unknown): string[] {
  const issues = schema.safeParse(value).error?.issues ?? [];
  return issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`);
}
