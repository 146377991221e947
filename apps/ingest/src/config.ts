/** Ingest's settings: the only reader of its environment. */
import { loadSettings, publisherKeys, sharedSettings, wholeNumber } from '@posthorn/runtime';
import { z } from 'zod';

const schema = z.object({
  ...sharedSettings(3000),
  PUBLISHER_KEYS: publisherKeys,
  PUBLISHER_RATE_LIMIT: wholeNumber(0, 1_000_000).default(0),
  ACK_REPLICAS: wholeNumber(0, 100).default(0),
  MAX_EVENT_BYTES: wholeNumber(256, 16 * 1024 * 1024).default(262_144),
});

export type IngestSettings = Readonly<z.infer<typeof schema>>;

/** Reads ingest's settings. Throws `SettingsError`. */
export function loadIngestSettings(env: NodeJS.ProcessEnv): IngestSettings {
  return loadSettings(schema, env);
}
