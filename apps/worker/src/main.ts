/** Starts one worker process. */
import { runApp } from '@posthorn/runtime';
import { buildWorker } from './build.ts';
import { loadWorkerSettings } from './config.ts';

await runApp(() => buildWorker(loadWorkerSettings(process.env)));
