/** The commands that show the state of the system and its audit trail. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { AUDIT_ACTIONS, AUDIT_ACTORS } from '@posthorn/core';
import { type AuditEntry, auditEntrySchema, type Overview, overviewSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { fromOption, limitOption, toOption } from './options.ts';
import type { Printer } from './print.ts';

const auditColumns = {
  at: (item: AuditEntry) => item.at,
  operator: (item: AuditEntry) => item.operator ?? 'posthorn',
  action: (item: AuditEntry) => item.action,
  about: (item: AuditEntry) => item.delivery_id ?? item.replay_id ?? item.subscription_id,
  summary: (item: AuditEntry) => item.summary,
};

export function addInsightCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('overview')
    .description('show counts, workers, recent attempts and the addresses with problems')
    .action(async () => {
      const overview = await client.get(overviewSchema, '/v1/overview');
      print.item(overview, summarize(overview));
    });

  program
    .command('audit')
    .description('list who did what, newest first')
    .option('--subscription <id>')
    .option('--operator <name>')
    .addOption(new Option('--actor <actor>', 'an operator, or Posthorn itself').choices(AUDIT_ACTORS))
    .option('--target <id>', 'a subscription, a delivery or a bulk replay')
    .addOption(new Option('--action <action>').choices(AUDIT_ACTIONS))
    .addOption(fromOption('written'))
    .addOption(toOption('written'))
    .addOption(limitOption())
    .action(async ({ subscription, limit, ...filter }) => {
      const query = { subscription_id: subscription, ...filter };
      const entries = await client.list(auditEntrySchema, '/v1/audit', query, limit);
      print.list(entries, auditColumns, 'No matching audit entries.');
    });
}

function summarize({ deliveries, subscriptions, queue, workers, last_hour: hour, addresses, format }: Overview) {
  const counts = (byName: Record<string, number>) =>
    Object.entries(byName)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  const rate = hour.success_rate === null ? '-' : `${(100 * hour.success_rate).toFixed(1)} %`;
  return {
    deliveries: counts(deliveries),
    subscriptions: counts(subscriptions),
    queue: counts(queue),
    workers: workers.length,
    'attempts, last hour': `${hour.attempts}, ${rate} succeeded`,
    'attempt ms, p50 / p99': `${hour.attempt_ms.p50 ?? '-'} / ${hour.attempt_ms.p99 ?? '-'}`,
    'arrival ms, p50 / p99': `${hour.arrival_ms.p50 ?? '-'} / ${hour.arrival_ms.p99 ?? '-'}`,
    paused: addresses.paused.map(({ id, url }) => `${id} ${url}`),
    'most failing': addresses.most_failing.map((item) => `${item.subscription_id} ${item.failed} failed`),
    slowest: addresses.slowest.map((item) => `${item.subscription_id} ${item.mean_ms} ms`),
    'stored format': describeFormat(format),
  };
}

function describeFormat({ current, newest, waits_for: waitsFor, raises_at: raisesAt }: Overview['format']): string {
  if (current === newest) return String(current);
  if (waitsFor.length > 0) return `${current}; ${newest} once these have stopped: ${waitsFor.join(', ')}`;
  return raisesAt === null ? `${current}; ${newest} later` : `${current}; ${newest} at ${raisesAt}`;
}
