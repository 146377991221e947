/** What `npm start` prints once everything runs: the delivery that was made, and what to do next. */
import { shellWord } from '../folder.ts';
import type { DemoState } from './keys.ts';
import type { AppName } from './ports.ts';
import type { Received } from './sample-receiver.ts';

const say = (line = '') => console.log(line);

/** The headers of a delivery that are printed. */
export const SHOWN_HEADERS = [
  'user-agent',
  'content-type',
  'service-signature',
  'service-event',
  'service-event-id',
  'service-delivery-id',
];

export function showDelivery({ headers, body }: Received): void {
  say('\nAn event was published, signed and delivered to the sample receiver, which verified it:\n');
  for (const name of SHOWN_HEADERS) {
    say(`  ${name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())}: ${headers[name]}`);
  }
  say(`\n  ${body}\n`);
}

export function showAddresses(
  urls: Record<AppName, string>,
  { state, redisUrl, dir }: { state: DemoState; redisUrl: string; dir: string },
): void {
  const shown = new URL(redisUrl);
  shown.password = '';
  say('Open the console and sign in with the token:\n');
  say(`  ${urls.console}     ${state.operatorToken}\n`);
  say(`Publish     ${urls.ingest}/v1/events            key  ${state.publisherKey}`);
  say(`APIs        ${urls.console}/docs, ${urls.ingest}/docs`);
  // The commands look for the folder where this one is.
  const { POSTHORN_DIR: own } = process.env;
  const folder = own === undefined ? '' : `POSTHORN_DIR=${shellWord(dir)} `;
  say(`Commands    ${folder}npx posthorn --help   (finds this console and its token)`);
  say(`Metrics     ${urls.worker}/metrics              also on the other two`);
  say(`Redis       ${shown.href}`);
  say(`Logs, keys  ${dir}/\n`);
  say('Publish another:\n');
  say(`  curl -X POST ${urls.ingest}/v1/events \\`);
  say(`    -H 'Authorization: Bearer ${state.publisherKey}' \\`);
  say(`    -H 'Content-Type: application/json' \\`);
  say(`    -d '{"type":"session.declined","environment":"production","data":{"id":"s-2","status":"declined"}}'\n`);
  say('Ctrl-C stops everything; the next npm start continues with the same data.\n');
}
