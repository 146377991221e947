/** The signature doctor on the command line. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { type SignatureCheck, signatureCheckSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import type { Printer } from './print.ts';
import { readText } from './read-text.ts';

/** A body that is not UTF-8 was changed. */
const WHY_UTF8 = ' Deliveries are: something on its way changed its encoding.';

export function addSignatureCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('check-signature <subscription>')
    .description('say why a receiver refuses a signature; exits with 1 if it is not correct')
    .requiredOption('--header <value>', 'the header Service-Signature that the receiver saw')
    .option('--body <file>', 'a file with the body that the receiver saw; - reads standard input', '-')
    .option('--event <id>', 'the id of the event, if the body does not show it')
    .option('--received-at <instant>', "the receiver's time when the request arrived, ISO 8601, to check its clock")
    .action(async (id, { header, body: file, event, receivedAt }) => {
      const seen = { header, body: await readText(file, WHY_UTF8), event_id: event, received_at: receivedAt };
      const path = `/v1/subscriptions/${encodeURIComponent(id)}/check-signature`;
      const check = await client.post(signatureCheckSchema, path, seen);
      print.item(check, summarize(check));
      if (!check.correct) process.exitCode = 1;
    });
}

function summarize({ correct, findings, difference, ...facts }: SignatureCheck) {
  return {
    correct: correct ? 'yes' : 'no',
    'signed with': facts.secret === null ? null : `the ${facts.secret} secret`,
    'signed at': facts.signed_at,
    ...(facts.clock_off_s !== null && { 'clock off': `${facts.clock_off_s} s` }),
    ...Object.fromEntries(findings.map(({ kind, message }) => [kind.replaceAll('_', ' '), message])),
    ...(difference && {
      'first difference': `at character ${difference.at + 1}`,
      // In quotes, so that no character of a body controls the terminal.
      'was sent': JSON.stringify(difference.sent),
      'was received': JSON.stringify(difference.received),
    }),
  };
}
