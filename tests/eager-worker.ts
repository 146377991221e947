/** Starts a worker that takes over the jobs of a dead process within seconds, so that tests need not wait a minute. */
import { runApp, systemClock } from '@posthorn/runtime';
import { buildWorker } from '../apps/worker/src/build.ts';
import { loadWorkerSettings } from '../apps/worker/src/config.ts';

const timings = { lockMs: 8_000, stalledCheckMs: 1_000, putBackMs: 10_000, jobExpectedAfterMs: 5_000 };

// Not at the top level: what is built is CommonJS (scripts/build-apps.ts).
void runApp(() => buildWorker(loadWorkerSettings(process.env), systemClock, timings));
