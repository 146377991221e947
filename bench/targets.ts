/** Reads how to call another system from a file, and fills in its placeholders. docs/figures.md has an example. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const callSchema = z.strictObject({
  url: z.string(),
  method: z.string().default('POST'),
  headers: z.record(z.string(), z.string()).default({}),
  /** Sent as JSON. */
  body: z.unknown(),
});
export type CallTemplate = z.infer<typeof callSchema>;

const targetSchema = z.strictObject({
  name: z.string(),
  /** Calls before the first event, each `times` times: they make addresses at `{receiver}`. */
  setUp: z.array(callSchema.extend({ times: z.int().min(1).default(1) })).default([]),
  publish: callSchema,
  publishToAll: callSchema,
  /** The number of addresses that `publishToAll` reaches. */
  fanOut: z.int().min(1),
  receiver: z.strictObject({
    host: z.string().default('127.0.0.1'),
    port: z.int().default(0),
    /** A regular expression whose first group is the id, in the body or in a header. */
    pattern: z.string(),
    header: z.string().optional(),
    status: z.int().default(200),
  }),
  pids: z.strictObject({ services: z.array(z.int()), stores: z.array(z.int()).default([]) }),
});
export type Target = z.infer<typeof targetSchema>;

export function readTarget(file: string): Target {
  const parsed = targetSchema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!parsed.success) throw new Error(`${file}:\n${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** The call of a template. `{name}` in its URL, headers and body stands for a value; any other braces stay. */
export function callTo(template: CallTemplate, values: Readonly<Record<string, string>>) {
  const fill = (text: string) => text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  const filled = (value: unknown): unknown => {
    if (typeof value === 'string') return fill(value);
    if (Array.isArray(value)) return value.map(filled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, filled(inner)]));
  };
  const headers = { 'content-type': 'application/json', ...(filled(template.headers) as Record<string, string>) };
  const body = template.body === undefined ? {} : { body: JSON.stringify(filled(template.body)) };
  return { url: fill(template.url), init: { method: template.method, headers, ...body } };
}
