/** Starts one ingest process. */
import { runApp } from '@posthorn/runtime';
import { buildIngest } from './build.ts';
import { loadIngestSettings } from './config.ts';

await runApp(() => buildIngest(loadIngestSettings(process.env)));
