/** For tests of live streams: reads server-sent events, and runs the command line until the test ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { root } from '../scripts/folder.ts';
import { atEnd } from './own.ts';
import { BASE_ENV } from './processes.ts';
import { OPERATOR_TOKEN } from './world.ts';

/** Opens a stream and collects its events. It is closed at the end of the test. */
export async function ownStream(url: string, headers: Record<string, string> = {}) {
  const ending = new AbortController();
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, ...headers },
    signal: ending.signal,
  });
  const messages: EventSourceMessage[] = [];
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
    // biome-ignore lint/suspicious/noExplicitAny: tests read whatever was sent
    of: (name: string): any[] => messages.filter(({ event }) => event === name).map(({ data }) => JSON.parse(data)),
    ended,
    close: () => ending.abort(),
  };
}

/** Runs a command of the command line, until it ends or the test does. */
export function ownCli(args: string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [join(root, 'apps/cli/src/main.ts'), ...args], {
    env: { ...BASE_ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, errors] = ['', ''];
  child.stdout.on('data', (data) => {
    out += data;
  });
  child.stderr.on('data', (data) => {
    errors += data;
  });
  const closed = once(child, 'close');
  atEnd(async () => {
    child.kill();
    await closed;
  });
  return { child, out: () => out, errors: () => errors };
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
