/** The worker's settings. Only this file reads the environment. */
import { DAY_MS, DEFAULT_PAUSE_AFTER, DEFAULT_RETRY_DELAYS_MS, OWN_SECRET } from '@posthorn/core';
import {
  durationListMs,
  durationMs,
  loadSettings,
  sendingSettings,
  setting,
  settingsAgree,
  sharedSettings,
  tracingSettings,
  wholeNumber,
  withoutUnusedTracing,
} from '@posthorn/runtime';
import { checkUrl, parseNameServers, parseNetworks } from '@posthorn/sender';
import { parseEncryptionKeys } from '@posthorn/signing';
import { z } from 'zod';

/** Notices may be sent to any network, since whoever installs Posthorn chooses `NOTICE_URL`. */
export const NOTICE_NETWORKS = parseNetworks('0.0.0.0/0,::/0');

/** Exported for docs/settings.md, which is generated from it. */
export const workerSettings = z
  .object({
    ...sharedSettings(3002),
    ...tracingSettings(),
    ...sendingSettings({ parseEncryptionKeys, parseNetworks, parseNameServers }),
    RETRY_DELAYS: setting(
      durationListMs.default([...DEFAULT_RETRY_DELAYS_MS]),
      'Delivery',
      '`1m,5m,30m,2h,12h`',
      'the pauses before the second and each further attempt. Set the same in all workers, which warn if another one has other pauses: attempts may then exceed the `max_attempts` of the API',
    ),
    PAUSE_AFTER: setting(
      wholeNumber(1, 1_000_000).default(DEFAULT_PAUSE_AFTER),
      'Delivery',
      '`20`',
      'consecutive failed deliveries after which an address is paused; the same in all workers, which warn otherwise',
    ),
    WORKER_CONCURRENCY: setting(
      wholeNumber(1, 10_000).default(100),
      'Delivery',
      '`100`',
      'maximum attempts in flight per worker',
    ),
    ADDRESS_CONCURRENCY: setting(
      wholeNumber(1, 10_000).default(10),
      'Delivery',
      '`10`',
      'maximum attempts in flight per worker to one address',
    ),
    HOST_CONCURRENCY: setting(
      wholeNumber(1, 10_000).optional(),
      'Delivery',
      'as `ADDRESS_CONCURRENCY`',
      'maximum attempts in flight per worker to one host, and to one IP (a /64 of IPv6); addresses known to be fast do not count',
    ),
    RELEASE_RATE: setting(
      wholeNumber(1, 10_000).default(50),
      'Delivery',
      '`50`',
      'held and overdue deliveries released per second to one address; the same in all workers, which warn otherwise',
    ),
    SEND_TRACEPARENT: setting(
      z.enum(['on', 'off'], 'must be on or off').default('off'),
      'Tracing',
      '`off`',
      '`on` or `off`: whether receivers get the header `traceparent` of deliveries whose event has a trace',
    ),
    ROLLBACK_WINDOW: setting(
      durationMs.default(DAY_MS),
      'Processes',
      '`1d`',
      'how long after an [upgrade](upgrades.md) the data stay readable by the release before',
    ),
    NOTICE_URL: setting(
      z.string().superRefine(checkNoticeUrl).optional(),
      'Operators',
      'none',
      'URL to POST [notices](notices.md) to: pauses, refusals, failed deliveries, failing addresses, bulk replays, outages',
    ),
    NOTICE_SECRET: setting(
      z.string().regex(OWN_SECRET, 'must be 16 to 256 printable ASCII characters').optional(),
      'Operators',
      'none; required with `NOTICE_URL`',
      'the secret that signs notices, 16 to 256 printable ASCII characters',
    ),
  })
  .check(settingsAgree)
  .refine(({ NOTICE_URL, NOTICE_SECRET }) => NOTICE_URL === undefined || NOTICE_SECRET !== undefined, {
    path: ['NOTICE_SECRET'],
    message: 'is required if NOTICE_URL is set',
    when: () => true,
  });

export type WorkerSettings = Readonly<z.infer<typeof workerSettings>>;

function checkNoticeUrl(text: string, context: z.RefinementCtx): void {
  const check = checkUrl(text, NOTICE_NETWORKS);
  if (!check.ok) context.addIssue({ code: 'custom', message: `can't be used: ${check.message}` });
}

/** Reads the worker's settings. Throws `StartError`. */
export function loadWorkerSettings(env: NodeJS.ProcessEnv): WorkerSettings {
  return loadSettings(workerSettings, withoutUnusedTracing(env));
}
