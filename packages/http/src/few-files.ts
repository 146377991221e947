/** Warns at the start of a process that may open fewer files than it accepts connections. */
import type { Logger } from '@posthorn/runtime';
import type { Registry } from 'prom-client';

/**
 * At the limit, a process closes connections as they come, and Node reports that to nobody. The limit is read from the
 * process's own metric, which only Linux has.
 */
export async function warnOfFewFiles(registry: Registry, maxConnections: number, logger: Logger): Promise<void> {
  const limit = (await registry.getSingleMetric('process_max_fds')?.get())?.values[0]?.value;
  if (limit === undefined || !(limit < maxConnections)) return;
  logger.warn(
    `This process may open ${limit} files (ulimit -Hn), but accepts up to ${maxConnections} connections. When the files ` +
      'are used up, it closes further connections as they come, and no line says so. Raise the limit above that.',
  );
}
