/** The console's settings. Nothing else in the console reads the environment. */
import { DEFAULT_RESPONSE_EXCERPT_BYTES, MAX_RESPONSE_EXCERPT_BYTES } from '@posthorn/core';
import { durationMs, loadSettings, operatorTokens, parsedBy, sharedSettings, wholeNumber } from '@posthorn/runtime';
import { parseNameServers, parseNetworks } from '@posthorn/sender';
import { parseEncryptionKeys } from '@posthorn/signing';
import { z } from 'zod';

const schema = z.object({
  ...sharedSettings(3001),
  OPERATOR_TOKENS: operatorTokens,
  SECRET_ENCRYPTION_KEY: parsedBy(
    parseEncryptionKeys,
    'must be 32 bytes in base64, or several keys separated by commas',
  ),
  ATTEMPT_TIMEOUT: durationMs.default(8_000),
  RESPONSE_EXCERPT_BYTES: wholeNumber(0, MAX_RESPONSE_EXCERPT_BYTES).default(DEFAULT_RESPONSE_EXCERPT_BYTES),
  ALLOWED_PRIVATE_NETWORKS: parsedBy(parseNetworks, 'must be networks in CIDR form separated by commas').default([]),
  DNS_SERVERS: parsedBy(parseNameServers, 'must be IP addresses, with or without a port, separated by commas').default(
    [],
  ),
  OPERATOR_RATE_LIMIT: wholeNumber(0, 1_000_000).default(5_000),
  SESSION_LIFETIME: durationMs.default(12 * 3_600_000),
  REQUIRE_HTTPS: z.enum(['production', 'always', 'never'], 'must be production, always or never').default('production'),
});

export type ConsoleSettings = Readonly<z.infer<typeof schema>>;

/** Reads the console's settings. Throws `SettingsError`. */
export function loadConsoleSettings(env: NodeJS.ProcessEnv): ConsoleSettings {
  return loadSettings(schema, env);
}
