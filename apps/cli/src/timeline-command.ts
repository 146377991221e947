/** The command `timeline`: the events and deliveries of a session, a reference or a user. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { MAX_PAGE_LIMIT, type Timeline, timelineSchema } from '@posthorn/operator-api';
import { type Client, tellLeftOut } from './client.ts';
import { environmentOption, limitOption } from './options.ts';
import type { Printer } from './print.ts';

/** The parameter of the API for each choice of `--by`. */
const PARAMETERS = { any: 'q', session: 'session_id', reference: 'reference', user: 'user_id' } as const;

type Item = Timeline['data'][number];
const late = (isLate: boolean) => (isLate ? ' (out of order)' : '');
const columns = {
  accepted: (item: Item) => `${item.accepted_at}${late(item.out_of_order)}`,
  type: (item: Item) => item.type,
  environment: (item: Item) => item.environment,
  session: (item: Item) => item.session_id,
  deliveries: statusesOf,
  event: (item: Item) => item.id,
};

/** Counts equal statuses: an event may have a delivery at each of many addresses. */
function statusesOf({ deliveries, more_deliveries: hasMore }: Item): string[] {
  const texts = deliveries.map((each) => `${each.status}${late(each.out_of_order)}`);
  const counts = [...Map.groupBy(texts, (text) => text)].map(([text, same]) =>
    texts.length === 1 ? text : `${same.length} ${text}`,
  );
  return hasMore ? [...counts, 'and more'] : counts;
}

/** Wide, so it is left out if no event has one. */
const traceOf = (item: Item) => item.trace_id;

export function addTimelineCommand(program: CommandUnknownOpts, client: Client, print: Printer): void {
  program
    .command('timeline <value>')
    .description('find events by session id, reference or user id, newest first')
    .addOption(
      new Option('--by <field>', 'what the value is')
        .choices(Object.keys(PARAMETERS) as (keyof typeof PARAMETERS)[])
        .default('any' as const),
    )
    .addOption(environmentOption())
    .addOption(limitOption())
    .action(async (value, { by, environment, limit }) => {
      const query = { [PARAMETERS[by]]: value, environment, limit: Math.min(limit, MAX_PAGE_LIMIT) };
      const timeline = await client.get(timelineSchema, '/v1/timeline', query);
      const { data, has_more, search, unreadable } = timeline;
      const off = search === 'off' ? ' Ingest does not index events (EVENT_SEARCH is off).' : '';
      const isTraced = data.some(({ trace_id }) => trace_id !== null);
      if (print.isJson()) print.item(timeline);
      else print.list(data, isTraced ? { ...columns, trace: traceOf } : columns, `No event has this value.${off}`);
      if (unreadable) tellLeftOut(unreadable);
      if (has_more) process.stderr.write('There may be older events that match.\n');
    });
}
