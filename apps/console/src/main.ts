/** Starts one console process. */
import { runApp } from '@posthorn/runtime';
import { buildConsole } from './build.ts';
import { loadConsoleSettings } from './config.ts';

await runApp(() => buildConsole(loadConsoleSettings(process.env)));
