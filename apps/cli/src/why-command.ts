/** The command `why`: what became of an event at an address. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { ENVIRONMENTS } from '@posthorn/core';
import { explanationSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import type { Printer } from './print.ts';

export function addWhyCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('why <event> <subscription>')
    .description('explain why an event was, or was not, delivered to the address of a subscription')
    .addOption(new Option('--environment <environment>', 'if both have an event with this id').choices(ENVIRONMENTS))
    .action(async (event_id, subscription_id, { environment }) => {
      const found = await client.get(explanationSchema, '/v1/explain', { event_id, subscription_id, environment });
      print.item(found, {
        answer: found.answer,
        'next step': found.next_step,
        since: found.since,
        'due at': found.due_at,
        event: found.event && `${found.event_id} ${found.event.type} ${found.event.environment}`,
        address: found.subscription && `${found.subscription.url} (${found.subscription.status})`,
        ...(found.event?.trace_id && { trace: found.event.trace_id }),
        delivery: found.delivery && `${found.delivery.id} (${found.delivery.status})`,
      });
    });
}
