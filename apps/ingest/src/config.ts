/** Ingest's settings. Only this file reads the environment. */
import { loadSettings, parsedBy, publisherKeys, sharedSettings, wholeNumber } from '@posthorn/runtime';
import { z } from 'zod';
import type { Quota } from './publisher-quota.ts';

const schema = z.object({
  ...sharedSettings(3000),
  PUBLISHER_KEYS: publisherKeys,
  PUBLISHER_RATE_LIMIT: wholeNumber(0, 1_000_000).default(0),
  PUBLISHER_QUOTA: parsedBy(parseQuota, 'must be 0, a percentage such as 50%, or a size such as 2gb').default({
    share: 0.5,
  }),
  EVENT_SEARCH: z.enum(['on', 'off'], 'must be on or off').default('on'),
  ACK_REPLICAS: wholeNumber(0, 100).default(0),
  MAX_EVENT_BYTES: wholeNumber(256, 16 * 1024 * 1024).default(262_144),
});

export type IngestSettings = Readonly<z.infer<typeof schema>>;

const UNITS = ['b', 'kb', 'mb', 'gb'];

function parseQuota(text: string): Quota | null | undefined {
  if (text === '0') return null;
  const [, share] = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text) ?? [];
  if (share !== undefined && Number(share) > 0 && Number(share) <= 100) return { share: Number(share) / 100 };
  const [, size, unit = ''] = /^(\d{1,12}(?:\.\d+)?)([kmg]?b)$/i.exec(text) ?? [];
  const bytes = Number(size) * 1024 ** UNITS.indexOf(unit.toLowerCase());
  return bytes > 0 ? { bytes } : undefined;
}

/** Reads ingest's settings. Throws `SettingsError`. */
export function loadIngestSettings(env: NodeJS.ProcessEnv): IngestSettings {
  return loadSettings(schema, env);
}
