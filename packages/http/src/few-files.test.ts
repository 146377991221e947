import { expect, it } from '@jest/globals';
import { Gauge, Registry } from 'prom-client';
import { warnOfFewFiles } from './few-files.ts';
import { logged, logger } from './test-service.ts';

it.each([
  [undefined, 0],
  [Number.NaN, 0],
  [10_000, 0],
  [9_999, 1],
])('a process that may open %p files warns %i times if it accepts 10,000 connections', async (files, times) => {
  const registry = new Registry();
  if (files !== undefined)
    new Gauge({ name: 'process_max_fds', help: 'as prom-client has it', registers: [registry] }).set(files);
  await warnOfFewFiles(registry, 10_000, logger);
  expect(logged.filter((line) => line.includes(`may open ${files} files`))).toHaveLength(times);
});
