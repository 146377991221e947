/** Sends a live feed as server-sent events, for as long as the operator is signed in. */
import { once } from 'node:events';
import type { Request, Response } from 'express';
import type { ConsoleContext } from './context.ts';
import type { FeedHub, FeedItem } from './feed-hub.ts';

/**
 * How often a stream says that it is alive, and the session is checked. The page marks data that is older than 2.75 s.
 */
const HEARTBEAT_MS = 2_000;

/** Proxies must pass on each event at once, as it is. */
const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

interface StreamOptions<T> {
  caller: string;
  request: Request;
  response: Response;
  /** The most entries that are sent at once. */
  maxItems: number;
  /** Resolves with the JSON of each entry that the client wants, by its place. */
  select: (items: FeedItem<T>[]) => Promise<{ id: string; json: string }[]>;
}

/**
 * Sends events named `name` from Last-Event-ID on, `gap` where some were left out, and a `heartbeat` every 2 s. Reads
 * only as fast as the client does. Resolves when the client leaves or has left, the hub stops, or the session has
 * ended. Throws `AppError` if the stream can't begin.
 */
export async function sendEventStream<T>(
  { operators, logger }: Pick<ConsoleContext, 'operators' | 'logger'>,
  hub: FeedHub<T>,
  name: string,
  { caller, request, response, maxItems, select }: StreamOptions<T>,
): Promise<void> {
  if (request.method === 'HEAD') {
    response.writeHead(200, HEADERS).end();
    return;
  }
  // The client may have left while a guard waited: nothing would end the stream then.
  if (response.closed) return;
  const left = new AbortController();
  response.once('close', () => left.abort());
  const ends = AbortSignal.any([left.signal, hub.stopping]);
  let beatAtMs = Number.NEGATIVE_INFINITY;
  try {
    const listener = { operator: caller, afterId: placeIn(request), maxItems, signal: ends };
    for await (const { cursor, items, hasGap } of hub.follow(listener)) {
      const text = [gapText(items, hasGap), ...(await select(items)).map((each) => eventText(name, each))];
      const isDue = performance.now() - beatAtMs >= HEARTBEAT_MS;
      if (isDue) {
        if (!(await operators.isStillSignedIn(request))) break;
        beatAtMs = performance.now();
        text.push(eventText('heartbeat', { id: cursor, json: '{}' }));
      }
      if (!response.headersSent) response.writeHead(200, HEADERS);
      if (!response.write(text.join(''))) await once(response, 'drain', { signal: ends });
    }
    if (!response.headersSent) response.writeHead(200, HEADERS);
    response.end();
  } catch (error) {
    if (!response.headersSent) throw error;
    // The client connects again, with Last-Event-ID. Not `end`: a client that does not read would delay it for ever.
    if (!ends.aborted) logger.warn({ err: error }, 'stream.failed');
    response.destroy();
  }
}

/** Returns Last-Event-ID if it is a place in a stream. */
function placeIn(request: Request): string | undefined {
  const id = request.get('last-event-id');
  return id !== undefined && /^\d{1,15}-\d{1,15}$/.test(id) ? id : undefined;
}

function eventText(name: string, { id, json }: { id: string; json: string }): string {
  return `id: ${id}\nevent: ${name}\ndata: ${json}\n\n`;
}

/** Says before a batch how many entries were left out in it: null if that is unknown. */
function gapText(items: FeedItem<unknown>[], hasGap: boolean): string {
  const isUnknown = hasGap || items.some(({ dropped }) => dropped === null);
  const dropped = items.reduce((sum, item) => sum + (item.dropped ?? 0), 0);
  if (!isUnknown && dropped === 0) return '';
  return `event: gap\ndata: ${JSON.stringify({ dropped: isUnknown ? null : dropped })}\n\n`;
}
