/** Follows a stream of server-sent events of the console, over disconnections and restarts of the console. */
import { setTimeout as wait } from 'node:timers/promises';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import type { Client, Query } from './client.ts';
import { mayPass } from './follow-work.ts';
import { UserError } from './user-error.ts';

const RECONNECT_MS = 1_000;
/** A stream without a heartbeat (every 2 s) for so long is dead, although its connection was not closed. */
const SILENCE_MS = 15_000;

interface StreamEvent {
  name: string;
  data: unknown;
}

/**
 * Yields the events of a stream, except heartbeats, without an end. Calls `onOpen` at each connection. Says on stderr
 * what is missing, and when the stream is interrupted. Throws `UserError` if the console refuses the call, or can't be
 * reached at the first try.
 */
export async function* followEvents(
  client: Client,
  path: string,
  query: Query,
  onOpen: () => void = () => undefined,
): AsyncGenerator<StreamEvent> {
  let lastId: string | undefined;
  let isInterrupted = false;
  for (let isFirst = true; ; isFirst = false) {
    const response = await client.open(path, query, lastId).catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error;
      if (isFirst || !mayPass(error)) throw error;
      return undefined;
    });
    if (response) onOpen();
    if (response && isInterrupted) say('Connected again.');
    isInterrupted &&= response === undefined;
    for await (const { id, event, data } of response ? messagesOf(response) : []) {
      lastId = id ?? lastId;
      if (event === 'gap') say(gapText(JSON.parse(data)));
      else if (event !== 'heartbeat') yield { name: event ?? 'message', data: JSON.parse(data) };
    }
    if (!isInterrupted) say('The connection to the console was lost. Trying again.');
    isInterrupted = true;
    await wait(RECONNECT_MS);
  }
}

/** Yields messages until the connection ends, breaks or is silent. */
async function* messagesOf(response: Response): AsyncGenerator<EventSourceMessage> {
  const reader = response.body
    ?.pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  while (reader) {
    const silence = new AbortController();
    const read = reader.read().catch(() => undefined);
    const silent = wait(SILENCE_MS, undefined, { signal: silence.signal }).catch(() => undefined);
    const result = await Promise.race([read, silent]);
    silence.abort();
    if (result === undefined || result.done) {
      // The stream has ended or is silent: close the connection.
      await reader.cancel().catch(() => undefined);
      return;
    }
    yield result.value;
  }
}

function gapText({ dropped }: { dropped: number | null }): string {
  return dropped === null ? '(some may be missing here)' : `(${dropped} left out: too many)`;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
