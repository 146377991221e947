/** The worker's settings: the only reader of its environment. */
import { DEFAULT_RETRY_DELAYS_MS } from '@posthorn/core';
import { durationListMs, durationMs, loadSettings, parsedBy, sharedSettings, wholeNumber } from '@posthorn/runtime';
import { parseNetworks } from '@posthorn/sender';
import { parseEncryptionKey } from '@posthorn/signing';
import { z } from 'zod';

const schema = z.object({
  ...sharedSettings(3002),
  SECRET_ENCRYPTION_KEY: parsedBy(parseEncryptionKey, 'must be 32 bytes in base64'),
  RETRY_DELAYS: durationListMs.default([...DEFAULT_RETRY_DELAYS_MS]),
  ATTEMPT_TIMEOUT: durationMs.default(8_000),
  PAUSE_AFTER: wholeNumber(1, 1_000_000).default(20),
  WORKER_CONCURRENCY: wholeNumber(1, 10_000).default(100),
  ADDRESS_CONCURRENCY: wholeNumber(1, 10_000).default(10),
  RELEASE_RATE: wholeNumber(1, 10_000).default(50),
  ALLOWED_PRIVATE_NETWORKS: parsedBy(parseNetworks, 'must be networks in CIDR form separated by commas').default([]),
});

export type WorkerSettings = Readonly<z.infer<typeof schema>>;

/** Reads the worker's settings. Throws `SettingsError`. */
export function loadWorkerSettings(env: NodeJS.ProcessEnv): WorkerSettings {
  return loadSettings(schema, env);
}
