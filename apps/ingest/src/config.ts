/** Ingest's settings. Only this file reads the environment. */
import {
  loadSettings,
  parsedBy,
  publisherKeys,
  setting,
  settingsAgree,
  sharedSettings,
  tracingSettings,
  wholeNumber,
  withoutUnusedTracing,
} from '@posthorn/runtime';
import { z } from 'zod';
import type { Quota } from './publisher-quota.ts';

/** Exported for docs/settings.md, which is generated from it. */
export const ingestSettings = z.object({
  ...sharedSettings(3000),
  ...tracingSettings(),
  PUBLISHER_KEYS: setting(
    publisherKeys,
    'Secrets',
    'required',
    '`name:environment:key,…` with environment `sandbox`, `production` or `both`; each key in printable ASCII, with a warning if it has fewer than 24 characters; a name may have several',
  ),
  PUBLISHER_RATE_LIMIT: setting(
    wholeNumber(0, 1_000_000).default(0),
    'Publishers',
    '`0`',
    'maximum events per second for each publisher; a batch larger than that uses up a whole second; `0` is off',
  ),
  PUBLISHER_QUOTA: setting(
    parsedBy(parseQuota, 'must be 0, a percentage such as 50%, or a size such as 2gb').default({
      share: 0.5,
    }),
    'Publishers',
    '`50%`',
    "how much one publisher may have stored, as [estimated](architecture.md#overload): a share of Redis's memory or a size (`2gb`). All that it published within `RETENTION` counts, also what has expired sooner, so where most deliveries succeed set a size, up to four times as high; `0` is off",
  ),
  EVENT_SEARCH: setting(
    z.enum(['on', 'off'], 'must be on or off').default('on'),
    'Publishers',
    '`on`',
    '`on` or `off`: whether new events are found by session id, reference and user id',
  ),
  ACK_REPLICAS: setting(
    wholeNumber(0, 100).default(0),
    'Redis',
    '`0`',
    'replicas that must acknowledge an event before it is accepted: [Redis in production](redis.md)',
  ),
  MAX_EVENT_BYTES: setting(
    wholeNumber(256, 16 * 1024 * 1024).default(262_144),
    'Publishers',
    '`262144`',
    'maximum size of an event, and of the body of a call for a single one. Receivers that read 1 MiB, [as advised](receivers.md), refuse larger ones with 413; with large ones [workers need more memory](kubernetes.md#memory)',
  ),
});

export type IngestSettings = Readonly<z.infer<typeof ingestSettings>>;

const UNITS = ['b', 'kb', 'mb', 'gb'];

function parseQuota(text: string): Quota | null | undefined {
  if (text === '0') return null;
  const [, share] = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text) ?? [];
  if (share !== undefined && Number(share) > 0 && Number(share) <= 100) return { share: Number(share) / 100 };
  const [, size, unit = ''] = /^(\d{1,12}(?:\.\d+)?)([kmg]?b)$/i.exec(text) ?? [];
  const bytes = Number(size) * 1024 ** UNITS.indexOf(unit.toLowerCase());
  return bytes > 0 ? { bytes } : undefined;
}

/** Reads ingest's settings. Throws `StartError`. */
export function loadIngestSettings(env: NodeJS.ProcessEnv): IngestSettings {
  return loadSettings(ingestSettings.check(settingsAgree), withoutUnusedTracing(env));
}
