/** The worker's settings. Only this file reads the environment. */
import {
  DEFAULT_PAUSE_AFTER,
  DEFAULT_RESPONSE_EXCERPT_BYTES,
  DEFAULT_RETRY_DELAYS_MS,
  MAX_RESPONSE_EXCERPT_BYTES,
  OWN_SECRET,
} from '@posthorn/core';
import { durationListMs, durationMs, loadSettings, parsedBy, sharedSettings, wholeNumber } from '@posthorn/runtime';
import { checkUrl, parseNameServers, parseNetworks } from '@posthorn/sender';
import { parseEncryptionKeys } from '@posthorn/signing';
import { z } from 'zod';

/** Notices may be sent to any network, since whoever installs Posthorn chooses `NOTICE_URL`. */
export const NOTICE_NETWORKS = parseNetworks('0.0.0.0/0,::/0');

const schema = z
  .object({
    ...sharedSettings(3002),
    SECRET_ENCRYPTION_KEY: parsedBy(
      parseEncryptionKeys,
      'must be 32 bytes in base64, or several keys separated by commas',
    ),
    RETRY_DELAYS: durationListMs.default([...DEFAULT_RETRY_DELAYS_MS]),
    ATTEMPT_TIMEOUT: durationMs.default(8_000),
    PAUSE_AFTER: wholeNumber(1, 1_000_000).default(DEFAULT_PAUSE_AFTER),
    RESPONSE_EXCERPT_BYTES: wholeNumber(0, MAX_RESPONSE_EXCERPT_BYTES).default(DEFAULT_RESPONSE_EXCERPT_BYTES),
    WORKER_CONCURRENCY: wholeNumber(1, 10_000).default(100),
    ADDRESS_CONCURRENCY: wholeNumber(1, 10_000).default(10),
    HOST_CONCURRENCY: wholeNumber(1, 10_000).optional(),
    RELEASE_RATE: wholeNumber(1, 10_000).default(50),
    ALLOWED_PRIVATE_NETWORKS: parsedBy(parseNetworks, 'must be networks in CIDR form separated by commas').default([]),
    DNS_SERVERS: parsedBy(
      parseNameServers,
      'must be IP addresses, with or without a port, separated by commas',
    ).default([]),
    NOTICE_URL: z.string().superRefine(checkNoticeUrl).optional(),
    NOTICE_SECRET: z.string().regex(OWN_SECRET, 'must be 16 to 256 printable ASCII characters').optional(),
  })
  .superRefine((settings, context) => {
    if (settings.NOTICE_URL !== undefined && settings.NOTICE_SECRET === undefined) {
      context.addIssue({ code: 'custom', path: ['NOTICE_SECRET'], message: 'is required if NOTICE_URL is set' });
    }
  });

export type WorkerSettings = Readonly<z.infer<typeof schema>>;

function checkNoticeUrl(text: string, context: z.RefinementCtx): void {
  const check = checkUrl(text, NOTICE_NETWORKS);
  if (!check.ok) context.addIssue({ code: 'custom', message: `is not an allowed target: ${check.message}` });
}

/** Reads the worker's settings. Throws `SettingsError`. */
export function loadWorkerSettings(env: NodeJS.ProcessEnv): WorkerSettings {
  return loadSettings(schema, env);
}
