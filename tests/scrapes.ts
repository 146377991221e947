/** Records scrapes of running apps as the input of promtool, as if they were two minutes apart. */
import { readFileSync } from 'node:fs';
import { eventually } from '@posthorn/testing';

const MINUTES_APART = 2;
/** Metrics whose values are times. The recording moves them, so that they keep their age at the scrape. */
const TIMES = /_last_success_timestamp_seconds$/;
/** The text of a scrape that fails. */
const GONE = '# gone';
const SAMPLE = /^([a-zA-Z_:][\w:]*)(\{[^}]*\})? (\S+)$/;

export type Recorder = ReturnType<typeof createRecorder>;

/**
 * Records what the alerts in the file `rules` use. `targets`: the base URL of each process by the name of its app. A
 * process that does not respond has no samples in that scrape.
 */
export function createRecorder(targets: Record<string, string>, rules: string) {
  const used = new Set(readFileSync(rules, 'utf8').match(/\b(?:posthorn|process)_\w+/g));
  const series = new Map<string, (string | undefined)[]>();
  let scrapes = 0;

  const record = (app: string, text: string) => {
    const nowS = Date.now() / 1000;
    for (const line of text.split('\n')) {
      const [, name = '', labels, value = ''] = SAMPLE.exec(line) ?? [];
      if (!used.has(name) || value === 'NaN') continue;
      const target = `job="posthorn",instance="${app}:1"`;
      const key = `${name}{${[labels?.slice(1, -1), target].filter((part) => part).join(',')}}`;
      const values = series.get(key) ?? [];
      const isTime = TIMES.test(name) && Number(value) > 0;
      values[scrapes] = isTime ? String(scrapes * MINUTES_APART * 60 - (nowS - Number(value))) : value;
      series.set(key, values);
    }
  };
  const last = new Map<string, string>();
  /**
   * Scrapes until the metrics are new: apps compute them once a second, and some figure of the process then changes.
   */
  const nextScrape = (app: string, url: string) =>
    eventually(`new metrics of ${app}`, async () => {
      const text = await scrapeOne(url);
      if (text === last.get(app) && text !== GONE) return undefined;
      last.set(app, text);
      return text;
    });
  return {
    async scrape(): Promise<void> {
      const texts = await Promise.all(
        Object.entries(targets).map(async ([app, url]) => [app, await nextScrape(app, url)] as const),
      );
      for (const [app, text] of texts) record(app, text);
      scrapes += 1;
    },
    /** The last value of a metric without other labels than those of its app. */
    latest(app: string, name: string): number | undefined {
      const [, values] = [...series].find(([key]) => key.startsWith(`${name}{`) && key.includes(`"${app}:1"`)) ?? [];
      const value = values?.[scrapes - 1];
      return value === undefined ? undefined : Number(value);
    },
    /** A test for promtool that fails with the names of all alerts that have fired. */
    asTest() {
      const values = (of: (string | undefined)[]) =>
        Array.from({ length: scrapes }, (_, i) => of[i] ?? (of[i - 1] === undefined ? '_' : 'stale')).join(' ');
      return {
        rule_files: [rules],
        evaluation_interval: '1m',
        tests: [
          {
            interval: `${MINUTES_APART}m`,
            input_series: Array.from(series, ([name, recorded]) => ({ series: name, values: values(recorded) })),
            promql_expr_test: [
              {
                expr: `count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[${scrapes * MINUTES_APART}m]))`,
                eval_time: `${scrapes * MINUTES_APART}m`,
                exp_samples: [],
              },
            ],
          },
        ],
      };
    },
    /** The alerts named in the output of that test. */
    alertsIn: (output: string) =>
      [...new Set(Array.from(output.matchAll(/alertname="(\w+)"/g), ([, alert = '']) => alert))].sort(),
  };
}

async function scrapeOne(url: string): Promise<string> {
  try {
    return await (await fetch(`${url}/metrics`)).text();
  } catch {
    // The process is gone: a scrape that fails is what the recording is about.
    return GONE;
  }
}
