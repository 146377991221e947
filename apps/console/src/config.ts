/** The console's settings. Nothing else in the console reads the environment. */
import { HOUR_MS } from '@posthorn/core';
import {
  durationMs,
  loadSettings,
  operatorTokens,
  sendingSettings,
  setting,
  settingsAgree,
  sharedSettings,
  tracingSettings,
  wholeNumber,
  withoutUnusedTracing,
} from '@posthorn/runtime';
import { parseNameServers, parseNetworks } from '@posthorn/sender';
import { parseEncryptionKeys } from '@posthorn/signing';
import { z } from 'zod';

/** Exported for docs/settings.md, which is generated from it. */
export const consoleSettings = z.object({
  ...sharedSettings(3001),
  ...tracingSettings(),
  ...sendingSettings({ parseEncryptionKeys, parseNetworks, parseNameServers }),
  OPERATOR_TOKENS: setting(
    operatorTokens,
    'Secrets',
    'required',
    '`name:token,…`; each token in printable ASCII (`openssl rand -base64 24`), with a warning if it has fewer than 24 characters; a name may have several',
  ),
  OPERATOR_RATE_LIMIT: setting(
    wholeNumber(0, 1_000_000).default(5_000),
    'Operators',
    '`5000`',
    'maximum calls per second for each operator; `0` is off',
  ),
  SESSION_LIFETIME: setting(
    durationMs.default(12 * HOUR_MS),
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

/** Reads the console's settings. Throws `StartError`. */
export function loadConsoleSettings(env: NodeJS.ProcessEnv): ConsoleSettings {
  return loadSettings(consoleSettings.check(settingsAgree), withoutUnusedTracing(env));
}
