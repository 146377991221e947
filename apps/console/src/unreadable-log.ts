/** Logs why records are left out of responses. */
import { createSeldom, type Logger } from '@posthorn/runtime';
import type { UnreadableRecord } from '@posthorn/store';

/** A list on screen is read every two seconds. */
const LOG_AGAIN_MS = 60_000;

/** Returns a function that logs records: those that it has not logged in the present minute. */
export function createUnreadableLog(
  logger: Pick<Logger, 'error'>,
  now?: () => number,
): (unreadable: readonly UnreadableRecord[]) => void {
  const isMinuteOver = createSeldom({ everyMs: LOG_AGAIN_MS, ...(now && { now }) });
  const logged = new Set<string>();
  return (unreadable) => {
    if (isMinuteOver()) logged.clear();
    const records = unreadable
      .filter(({ message }) => !logged.has(message))
      .map(({ id, message }) => ({ id, message }));
    if (records.length === 0) return;
    for (const { message } of records) logged.add(message);
    logger.error({ records }, 'records.unreadable');
  };
}
