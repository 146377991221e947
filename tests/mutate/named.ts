/** Single mutations that are important by themselves. Most are in files that no other part mutates. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant } from './mutant.ts';
import { REPOSITORY } from './tree.ts';

interface Named {
  name: string;
  file: string;
  original: string;
  replacement: string;
  /** Jest's arguments. */
  tests: string[];
}

const LIMITS = ['--selectProjects', 'e2e', '--', 'tests/limits.test.ts'];
const PARKED = ['--selectProjects', 'int', '--', 'packages/dispatch/src/parked.int.test.ts'];
const PUBLISHERS = ['--selectProjects', 'e2e', '--', 'tests/attacks/publishers.test.ts'];
const INGEST = ['--selectProjects', 'e2e', '--', 'tests/ingest.test.ts'];
const OUTAGE = ['--selectProjects', 'e2e', '-t', 'while Redis is away', '--', 'tests/processes.test.ts'];
const unit = (file: string) => ['--selectProjects', 'unit', '--', file];

const NEXT_JOB = 'packages/store/src/lua/lib/next-job.lua';
const HTTP = 'packages/http/src';
const INGEST_SRC = 'apps/ingest/src';

export const NAMED: readonly Named[] = [
  {
    name: '`PAUSE_AFTER` 20 → 21',
    file: 'packages/core/src/decide.ts',
    original: 'DEFAULT_PAUSE_AFTER = 20',
    replacement: 'DEFAULT_PAUSE_AFTER = 21',
    tests: LIMITS,
  },
  {
    name: '`ATTEMPT_TIMEOUT` 8 s → 9 s',
    file: 'packages/runtime/src/sending-settings.ts',
    original: 'timerMs.default(8_000)',
    replacement: 'timerMs.default(9_000)',
    tests: LIMITS,
  },
  ...['worker/src/outbound.ts', 'console/src/build.ts'].map((file) => ({
    name: `limit of an attempt one second longer than the setting, ${file}`,
    file: `apps/${file}`,
    original: 'timeoutMs: settings.ATTEMPT_TIMEOUT,',
    replacement: 'timeoutMs: settings.ATTEMPT_TIMEOUT + 1_000,',
    tests: LIMITS,
  })),
  {
    name: "the retry's delay counts from the attempt's start",
    file: 'apps/worker/src/attempts/attempt-delivery.ts',
    original: 'context.retryDelaysMs, endedAtMs)',
    replacement: 'context.retryDelaysMs, startedAtMs)',
    tests: LIMITS,
  },
  {
    name: "the sender's limit fires one second late",
    file: 'packages/sender/src/sender.ts',
    original: 'context.timeoutMs);',
    replacement: 'context.timeoutMs + 1_000);',
    tests: unit('packages/sender/src/limit.test.ts'),
  },
  {
    name: 'under a global concurrency, one address may have all places',
    file: NEXT_JOB,
    original: 'if queue.addresses[address] then return false end',
    replacement: '',
    tests: PARKED,
  },
  {
    name: 'one place more than its share',
    file: NEXT_JOB,
    original: 'if queue.active < math.max(1,',
    replacement: 'if queue.active <= math.max(1,',
    tests: PARKED,
  },
  {
    name: 'all active jobs are looked through, however many',
    file: NEXT_JOB,
    original: ' or queue.maxActive > MAX_ACTIVE_LOOKED_THROUGH',
    replacement: '',
    tests: PARKED,
  },
  {
    name: 'the active addresses are not read again',
    file: NEXT_JOB,
    original: 'if queue then queue.addresses = nil end',
    replacement: '',
    tests: PARKED,
  },
  {
    name: 'any number of chunks may be unread before the response',
    file: `${HTTP}/handle-in-order.ts`,
    original: 'request.readableFlowing === true || isAllowed();',
    replacement: 'true;',
    tests: unit(`${HTTP}/handle-in-order.test.ts`),
  },
  {
    name: 'any number of chunks may follow the response',
    file: `${HTTP}/handle-in-order.ts`,
    original: "if (!request.complete) request.on('data', isAllowed);",
    replacement: '',
    tests: unit(`${HTTP}/handle-in-order.test.ts`),
  },
  {
    name: 'the connection stays open after a request that is not handled, such as an unknown expectation',
    file: `${HTTP}/handle-in-order.ts`,
    original: "writeHead(errorCodes[code].status, { Connection: 'close', 'Content-Type'",
    replacement: "writeHead(errorCodes[code].status, { 'Content-Type'",
    tests: unit(`${HTTP}/handle-in-order.test.ts`),
  },
  {
    name: 'a body may have any number of pieces',
    file: `${HTTP}/json-body.ts`,
    original: 'if (joined.length === MAX_PIECES / JOINED_PIECES) refuse(tooManyPieces());',
    replacement: '',
    tests: unit(`${HTTP}/json-body.test.ts`),
  },
  {
    name: 'a body without a length may have any size',
    file: `${HTTP}/json-body.ts`,
    original: 'if (size > limit.maxBytes) refuse',
    replacement: 'if (size < 0) refuse',
    tests: unit(`${HTTP}/json-body.test.ts`),
  },
  {
    name: 'a budget is free once the client is gone',
    file: `${HTTP}/json-body.ts`,
    original: 'if (handling) handling',
    replacement: 'if (!response) handling!',
    tests: unit(`${HTTP}/api.test.ts`),
  },
  {
    name: 'the room for events is twice as large',
    file: `${INGEST_SRC}/routes.ts`,
    original: 'MAX_EVENTS_IN_FLIGHT = 12_000',
    replacement: 'MAX_EVENTS_IN_FLIGHT = 24_000',
    tests: PUBLISHERS,
  },
  {
    name: 'a batch counts as one event',
    file: `${INGEST_SRC}/routes.ts`,
    original: 'Math.min(MAX_BATCH_EVENTS, Math.ceil(bytes / MIN_EVENT_BYTES) || 1)',
    replacement: 'bytes && 1',
    tests: PUBLISHERS,
  },
  {
    name: 'what a publisher has in flight to Redis weighs nothing',
    file: `${INGEST_SRC}/ingest-event.ts`,
    original: '1 + deliveries + Math.floor(event.dataJson.length / BYTES_OF_A_DELIVERY)',
    replacement: 'deliveries * 0',
    tests: unit(`${INGEST_SRC}/ingest-event.test.ts`),
  },
  {
    name: 'all publishers wait in one line',
    file: `${INGEST_SRC}/ingest-event.ts`,
    original: 'lineOf(publisher.name, partition)',
    replacement: "lineOf('', partition)",
    tests: unit(`${INGEST_SRC}/ingest-event.test.ts`),
  },
  {
    name: 'an event without an id is in any partition',
    file: `${INGEST_SRC}/ingest-event.ts`,
    original: 'return isOne && partitions > 1 ?',
    replacement: 'return isOne && partitions < 1 ?',
    tests: INGEST,
  },
  {
    name: 'all events of a batch are tried while Redis is away',
    file: `${INGEST_SRC}/routes.ts`,
    original: 'if (result.status === 503) unavailable = result;',
    replacement: '',
    tests: OUTAGE,
  },
  {
    name: 'events begin in no turns',
    file: `${INGEST_SRC}/routes.ts`,
    original: 'const turn = context.turns.turnFor(publisher.name);',
    replacement: 'const turn = undefined as undefined | Promise<void>;',
    tests: INGEST,
  },
];

/**
 * Finds a named mutation in the current file. Throws unless its text is there exactly once: then the list is out of
 * date.
 */
export function locate({ name, file, original, replacement }: Named): Mutant {
  const source = readFileSync(join(REPOSITORY, file), 'utf8');
  const [start, second] = [source.indexOf(original), source.lastIndexOf(original)];
  if (start < 0 || start !== second)
    throw new Error(`${file} does not contain "${original}" exactly once: update named.ts`);
  return { file, kind: name, start, end: start + original.length, replacement };
}
