/** Warns of settings that must be the same in all processes and differ from those of another one that is running. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '@posthorn/core';
import { installationKey } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { PROCESS_FIELD, type RegisteredProcess } from './formats.ts';

/** A process that has not registered for this long does not count. It registers every 5 s. */
const RUNNING_MS = 30_000;

/** The settings that processes must agree on, as they are written in a configuration. */
export type AgreedSettings = Readonly<Record<string, string>>;

/** Settings that all workers must agree on. Only workers have them. */
export interface WorkersSettings {
  RETRY_DELAYS?: readonly number[];
  PAUSE_AFTER?: number;
  RELEASE_RATE?: number;
}

/** Of the settings of a process, those that it registers. */
export function agreedSettings(
  settings: { RETENTION: number; RETENTION_SUCCEEDED: number } & WorkersSettings,
): AgreedSettings {
  const { RETENTION, RETENTION_SUCCEEDED, RETRY_DELAYS, PAUSE_AFTER, RELEASE_RATE } = settings;
  return {
    RETENTION: durationText(RETENTION),
    RETENTION_SUCCEEDED: durationText(RETENTION_SUCCEEDED),
    ...(RETRY_DELAYS && { RETRY_DELAYS: RETRY_DELAYS.map(durationText).join(',') }),
    ...(PAUSE_AFTER !== undefined && { PAUSE_AFTER: String(PAUSE_AFTER) }),
    ...(RELEASE_RATE !== undefined && { RELEASE_RATE: String(RELEASE_RATE) }),
  };
}

/**
 * Returns a function to call each time when this process has registered, with how many registrations there were. After
 * each new one that compares the settings of all running processes with `own`. `warn` gets one sentence for each
 * setting and other value.
 */
export function createSettingsComparison(
  store: Pick<Store, 'redis' | 'prefix'>,
  own: AgreedSettings,
  warn: (text: string) => void,
): (registrations: string) => Promise<void> {
  const warned = new Set<string>();
  let compared: string | undefined;
  return async (registrations) => {
    if (registrations === compared) return;
    const { nowMs, fields } = await runScript(store, 'readInstallation', installationKey(store.prefix), {});
    compared = registrations;
    for (const [field, text] of fields) {
      if (!field.startsWith(PROCESS_FIELD)) continue;
      const { app, host, pid, seenAtMs = 0, settings = {} } = readProcess(text);
      if (nowMs - seenAtMs >= RUNNING_MS) continue;
      for (const [name, value] of Object.entries(settings)) {
        if (own[name] === undefined || own[name] === value || warned.has(`${name}=${value}`)) continue;
        warned.add(`${name}=${value}`);
        warn(
          `${name} is ${own[name]} here, but ${value} in ${app} ${host}:${pid}. It must be the same in all processes that ` +
            'have it (docs/settings.md): until then each applies its own.',
        );
      }
    }
  };
}

/** No garbage in the record may keep a process from starting. */
function readProcess(text: string): Partial<RegisteredProcess> {
  try {
    return Object(JSON.parse(text)) as Partial<RegisteredProcess>;
  } catch {
    return {};
  }
}

function durationText(ms: number): string {
  const units = [
    ['d', DAY_MS],
    ['h', HOUR_MS],
    ['m', MINUTE_MS],
    ['s', 1_000],
  ] as const;
  const unit = units.find(([, unitMs]) => ms % unitMs === 0);
  return unit ? `${ms / unit[1]}${unit[0]}` : `${ms}ms`;
}
