/** The console's settings. Nothing else in the console reads the environment. */
import { DEFAULT_RESPONSE_EXCERPT_BYTES, MAX_RESPONSE_EXCERPT_BYTES } from '@posthorn/core';
import {
  checkShared,
  durationMs,
  loadSettings,
  operatorTokens,
  parsedBy,
  setting,
  sharedSettings,
  tracingSettings,
  wholeNumber,
} from '@posthorn/runtime';
import { parseNameServers, parseNetworks } from '@posthorn/sender';
import { parseEncryptionKeys } from '@posthorn/signing';
import { z } from 'zod';

/** Exported for docs/settings.md, which is generated from it. */
export const consoleSettings = z.object({
  ...sharedSettings(3001),
  ...tracingSettings(),
  OPERATOR_TOKENS: setting(
    operatorTokens,
    'Secrets',
    'required',
    '`name:token,…`; each token at least 24 printable ASCII characters (`openssl rand -base64 24`)',
  ),
  SECRET_ENCRYPTION_KEY: setting(
    parsedBy(parseEncryptionKeys, 'must be 32 bytes in base64, or several keys separated by commas'),
    'Secrets',
    'required',
    '32 bytes in base64 that encrypt signing secrets (`openssl rand -base64 32`); several keys: [secrets](secrets.md)',
  ),
  ATTEMPT_TIMEOUT: setting(
    durationMs.default(8_000),
    'Delivery',
    '`8s`',
    'time limit of an attempt; also of a validation by the console',
  ),
  RESPONSE_EXCERPT_BYTES: setting(
    wholeNumber(0, MAX_RESPONSE_EXCERPT_BYTES).default(DEFAULT_RESPONSE_EXCERPT_BYTES),
    'Delivery',
    '`1024`',
    'bytes kept of the response to a failed attempt or a validation, up to 16384; `0` keeps nothing that came back',
  ),
  ALLOWED_PRIVATE_NETWORKS: setting(
    parsedBy(parseNetworks, 'must be networks in CIDR form separated by commas').default([]),
    'Addresses',
    'none',
    'CIDRs that the address guard allows, for development',
  ),
  DNS_SERVERS: setting(
    parsedBy(parseNameServers, 'must be IP addresses, with or without a port, separated by commas').default([]),
    'Addresses',
    'those of the system',
    'name servers for receivers, `ip` or `ip:port`, separated by commas',
  ),
  OPERATOR_RATE_LIMIT: setting(
    wholeNumber(0, 1_000_000).default(5_000),
    'Operators',
    '`5000`',
    'maximum calls per second for each operator token; `0` is off',
  ),
  SESSION_LIFETIME: setting(
    durationMs.default(12 * 3_600_000),
    'Operators',
    '`12h`',
    'how long an operator stays signed in',
  ),
  REQUIRE_HTTPS: setting(
    z.enum(['production', 'always', 'never'], 'must be production, always or never').default('production'),
    'Addresses',
    '`production`',
    'which addresses must use https: those for `production` events, `always` or `never`',
  ),
});

export type ConsoleSettings = Readonly<z.infer<typeof consoleSettings>>;

/** Reads the console's settings. Throws `SettingsError`. */
export function loadConsoleSettings(env: NodeJS.ProcessEnv): ConsoleSettings {
  return loadSettings(consoleSettings.superRefine(checkShared), env);
}
