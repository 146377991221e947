/** For tests of live streams: reads server-sent events, and finds gaps in them. */
import { knownOrNew } from '@posthorn/core';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { atEnd } from './own.ts';
import { OPERATOR_TOKEN } from './world.ts';

/** Opens a stream and collects its events. It is closed at the end of the test. */
export async function ownStream(url: string, headers: Record<string, string> = {}) {
  const ending = new AbortController();
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, ...headers },
    signal: ending.signal,
  });
  const messages: EventSourceMessage[] = [];
  /** The data of each message that a test has asked for: it may look at thousands of them again and again. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever was sent
  const parsed = new Map<EventSourceMessage, any>();
  let text = '';
  const parser = createParser({ onEvent: (message) => messages.push(message) });
  const read = async () => {
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      parser.feed(piece);
    }
  };
  const ended = read().catch(() => undefined);
  atEnd(async () => {
    ending.abort();
    await ended;
  });
  return {
    response,
    text: () => text,
    messages: () => messages,
    of: (name: string) =>
      messages
        .filter(({ event }) => event === name)
        .map((message) => knownOrNew(parsed, message, ({ data }) => JSON.parse(data))),
    ended,
    close: () => ending.abort(),
  };
}

/** Splits numbers into runs in which each is one more than the last. */
export function runsOf(numbers: number[]): number[][] {
  const runs: number[][] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run?.at(-1) === number - 1) run.push(number);
    else runs.push([number]);
  }
  return runs;
}
