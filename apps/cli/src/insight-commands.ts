/** The commands that show the state of the system and its audit trail. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { AUDIT_ACTIONS, AUDIT_ACTORS } from '@posthorn/core';
import {
  type AuditEntry,
  auditEntrySchema,
  type auditQuerySchema,
  type FiltersOf,
  type Overview,
  overviewSchema,
} from '@posthorn/operator-api';
import { type Client, tellLeftOut } from './client.ts';
import { namesOf } from './names.ts';
import { fromOption, limitOption, toOption } from './options.ts';
import type { Printer } from './print.ts';

const auditColumns = {
  at: (item: AuditEntry) => item.at,
  operator: (item: AuditEntry) => item.operator ?? 'posthorn',
  action: (item: AuditEntry) => item.action,
  about: (item: AuditEntry) => item.delivery_id ?? item.replay_id ?? item.subscription_id ?? erasureOf(item),
};

function erasureOf({ detail }: AuditEntry): string | undefined {
  return typeof detail.erasure_id === 'string' ? detail.erasure_id : undefined;
}

export function addInsightCommands(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('overview')
    .description('show counts, workers, recent attempts and the addresses with problems')
    .action(async () => {
      const overview = await client.get(overviewSchema, '/v1/overview');
      print.item(overview, summarize(overview));
      if (overview.unreadable) tellLeftOut(overview.unreadable);
    });

  program
    .command('audit')
    .description('list who did what, newest first')
    .option('--subscription <id>')
    .option('--operator <name>')
    .addOption(new Option('--actor <actor>', 'an operator, or Posthorn itself').choices(AUDIT_ACTORS))
    .option('--target <id>', 'a subscription, a delivery, a bulk replay or an erasure')
    .addOption(new Option('--action <action>').choices(AUDIT_ACTIONS))
    .addOption(fromOption('written'))
    .addOption(toOption('written'))
    .addOption(limitOption())
    .action(async ({ subscription, operator, actor, target, action, from, to, limit }) => {
      const query = { subscription_id: subscription, operator, actor, target, action, from, to } satisfies FiltersOf<
        typeof auditQuerySchema
      >;
      const entries = await client.list(auditEntrySchema, '/v1/audit', query, limit);
      const ids = print.isJson() ? [] : entries.flatMap((entry) => entry.subscription_id ?? []);
      const names = await namesOf(client, ids);
      const columns = {
        ...auditColumns,
        address: (item: AuditEntry) => names.get(item.subscription_id ?? '')?.url ?? null,
        summary: (item: AuditEntry) => item.summary,
      };
      print.list(entries, columns, 'No matching audit entries.', limit);
    });
}

/** Addresses with problems that the summary has. */
const MAX_PROBLEMS = 10;

function summarize(overview: Overview) {
  const { deliveries, subscriptions, queue, workers, last_hour: hour, addresses, problems, incidents } = overview;
  const counts = (byName: Record<string, number>) =>
    Object.entries(byName)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  const { oldest_pending_age_ms: oldestMs, ...jobs } = queue;
  const rate = hour.success_rate === null ? '-' : `${(100 * hour.success_rate).toFixed(1)} %`;
  return {
    'all well': overview.all_well ? 'yes' : `no: ${overview.why_not_well.join('; ')}`,
    incidents: incidents.map((incident) => ({
      since: incident.started_at,
      addresses: incident.addresses,
      error: incident.error_label ?? 'several',
      host: incident.host ?? 'several',
    })),
    'need attention': problems.total,
    'the worst': problems.items.slice(0, MAX_PROBLEMS).map((problem) => ({
      id: problem.subscription_id,
      status: problem.status,
      'failing since': problem.failing_since,
      held: problem.held,
      url: problem.url,
      verdict: problem.verdict ?? problem.status_reason,
    })),
    deliveries: counts(deliveries),
    subscriptions: counts(subscriptions),
    queue: counts(jobs),
    'oldest pending': `${Math.round(oldestMs / 1_000)} s`,
    workers: workers.map((worker) => ({
      process: `${worker.host}:${worker.pid}`,
      'in flight': `${worker.in_flight} of ${worker.concurrency}`,
      ...(worker.outage_since && { 'reaches nothing since': worker.outage_since }),
    })),
    'memory of Redis': memoryText(overview.memory),
    'attempts, last hour': `${hour.attempts}, ${rate} succeeded`,
    'attempt ms, p50 / p99': `${hour.attempt_ms.p50 ?? '-'} / ${hour.attempt_ms.p99 ?? '-'}`,
    'arrival ms, p50 / p99': `${hour.arrival_ms.p50 ?? '-'} / ${hour.arrival_ms.p99 ?? '-'}`,
    'most failed attempts': addresses.most_failing.map(({ subscription_id: id, failed, url }) => ({ id, failed, url })),
    slowest: addresses.slowest.map(({ subscription_id: id, mean_ms: ms, url }) => ({ id, ms, url })),
    'stored format': describeFormat(overview.format),
  };
}

const MEBIBYTE = 2 ** 20;

function memoryText({ used_bytes: used, capacity_bytes: capacity }: Overview['memory']): string {
  if (used === null || capacity === null) return '-';
  return `${Math.round(used / MEBIBYTE)} of ${Math.round(capacity / MEBIBYTE)} MiB, ${Math.round((100 * used) / capacity)} %`;
}

function describeFormat({ current, newest, waits_for: waitsFor, raises_at: raisesAt }: Overview['format']): string {
  if (current === newest) return String(current);
  if (waitsFor.length > 0) return `${current}; ${newest} once these have stopped: ${waitsFor.join(', ')}`;
  return raisesAt === null ? `${current}; ${newest} later` : `${current}; ${newest} at ${raisesAt}`;
}
