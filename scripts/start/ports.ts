/** The ports of the three apps: the ones that are set, otherwise the default ones, otherwise free ones. */
import { freePort, isPortFree } from '../free-port.ts';

/** Each app's setting and its default port. */
const APPS = {
  ingest: { setting: 'INGEST_PORT', usual: 3000 },
  console: { setting: 'CONSOLE_PORT', usual: 3001 },
  worker: { setting: 'WORKER_PORT', usual: 3002 },
} as const;

export type AppName = keyof typeof APPS;
export const APP_NAMES = Object.keys(APPS) as AppName[];

const MAX_PORT = 65_535;

/**
 * Chooses a port for each app from `INGEST_PORT`, `CONSOLE_PORT` and `WORKER_PORT`. Throws if ports that were set can't
 * be used, and names all of them. A default port that is in use is replaced by a free one, which `say` reports.
 */
export async function choosePorts(
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<Record<AppName, number>> {
  const chosen = new Map<AppName, number>();
  const problems: string[] = [];
  const ask = (app: AppName) => env[APPS[app].setting]?.trim() || undefined;
  const isOurs = (port: number) => [...chosen.values()].includes(port);
  for (const app of APP_NAMES) {
    const asked = ask(app);
    if (asked === undefined) continue;
    const port = /^\d{1,5}$/.test(asked) ? Number(asked) : 0;
    const { setting } = APPS[app];
    if (port < 1 || port > MAX_PORT)
      problems.push(`${setting}: must be a port from 1 to ${MAX_PORT}, but is "${asked}".`);
    else if (isOurs(port)) problems.push(`${setting}: port ${port} is set twice.`);
    else if (!(await isPortFree(port)))
      problems.push(`${setting}: port ${port} is in use, or you may not use it. Choose another, or unset ${setting}.`);
    else chosen.set(app, port);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
  for (const app of APP_NAMES.filter((one) => !chosen.has(one))) {
    const { usual } = APPS[app];
    if (!isOurs(usual) && (await isPortFree(usual))) {
      chosen.set(app, usual);
      continue;
    }
    let port = await freePort();
    while (isOurs(port)) port = await freePort();
    chosen.set(app, port);
    say(`Port ${usual} is in use; ${app} uses ${port}.`);
  }
  return Object.fromEntries(chosen) as Record<AppName, number>;
}
