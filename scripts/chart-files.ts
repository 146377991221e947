/**
 * The files of the Helm chart that follow from the schemas of the apps' settings: which app reads what, and which
 * values are valid.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mayBeInFile } from '@posthorn/runtime';
import { root } from './folder.ts';
import { jsonText } from './json-text.ts';
import { SETTINGS } from './settings-document.ts';

export const CHART = join(root, 'deploy/helm/posthorn');

/** What the chart knows of a setting. */
interface ChartSetting {
  /** The apps that read it. */
  apps: string[];
  /** It comes from a Secret. */
  secret?: true;
  /** It is a secret without which its apps do not start. */
  required?: true;
}

/** Settings that the chart sets from values of its own: `port` and `operationsPort`. */
const SET_BY_CHART = new Set(['PORT', 'OPERATIONS_PORT']);

/** A secret that may be a plain value, because not everybody's Redis has a password. A URL with one is refused. */
const PLAIN_URL = { type: 'string', pattern: '^(rediss?://[^@]*)?$' };

/** Every setting that can be given to the chart, by name. */
function chartSettings(): Record<string, ChartSetting> {
  const settings: Record<string, ChartSetting> = {};
  for (const [app, schema] of Object.entries(SETTINGS)) {
    for (const [name, one] of Object.entries(schema.shape)) {
      if (SET_BY_CHART.has(name)) continue;
      const setting: ChartSetting = settings[name] ?? { apps: [], ...(mayBeInFile(name) ? { secret: true } : {}) };
      setting.apps.push(app);
      if (setting.secret && !one.safeParse(undefined).success) setting.required = true;
      settings[name] = setting;
    }
  }
  return settings;
}

/** The files, by their paths in the chart. In values.schema.json only the definitions of settings are replaced. */
export function chartFiles(): Record<string, string> {
  const settings = chartSettings();
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'));
  Object.assign(schema.$defs, {
    settings: object(settings, (name, { secret }) =>
      name === 'REDIS_URL' ? PLAIN_URL : secret ? undefined : { $ref: '#/$defs/setting' },
    ),
    secretSettings: object(settings, (_name, { secret }) => (secret ? { $ref: '#/$defs/secretKey' } : undefined)),
  });
  return { 'files/settings.json': jsonText(settings), 'values.schema.json': jsonText(schema) };
}

/** The schema of an object that has a property for each setting for which `property` returns one, and no other. */
function object(
  settings: Record<string, ChartSetting>,
  property: (name: string, setting: ChartSetting) => object | undefined,
) {
  const properties = Object.entries(settings).flatMap(([name, setting]) => {
    const value = property(name, setting);
    return value === undefined ? [] : [[name, value]];
  });
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}
