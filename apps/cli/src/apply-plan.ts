/** Compares the subscriptions that should exist with those that do. */
import type { Subscription } from '@posthorn/operator-api';
import { identityOf, type Wanted } from './subscriptions-file.ts';
import { UserError } from './user-error.ts';

const FIELDS = ['url', 'event_types', 'environment', 'description'] as const;
type Field = (typeof FIELDS)[number];

export type Change =
  | { change: 'create'; wanted: Wanted }
  | { change: 'update'; present: Subscription; fields: Partial<Record<Field, { from: unknown; to: unknown }>> }
  | { change: 'validate'; present: Subscription }
  | { change: 'delete'; present: Subscription };

/**
 * Returns the changes that turn `present` into `wanted`: updates, then creations, then, if `prune` is set, deletions of
 * subscriptions whose key is not wanted any more. A subscription without a key is never deleted. If `validate` is set,
 * those that are as wanted but not validated, since an earlier validation failed, are among the updates. Throws
 * `UserError` if a new subscription has the url and an environment of an existing one without a key, if two entries are
 * the same subscription, or if an entry's id does not exist.
 */
export function planChanges(
  wanted: readonly Wanted[],
  present: readonly Subscription[],
  { prune = false, validate = false }: { prune?: boolean | undefined; validate?: boolean | undefined },
): Change[] {
  const byIdentity = new Map(
    present.flatMap((one) => [[one.id, one] as const, ...(one.key ? [[one.key, one] as const] : [])]),
  );
  const updates: Change[] = [];
  const creations: Change[] = [];
  const withoutKey = Map.groupBy(
    present.filter(({ key }) => key === null),
    ({ url }) => url,
  );
  const problems: string[] = [];
  const named = new Map<Subscription, string>();
  for (const entry of wanted) {
    const found = byIdentity.get(identityOf(entry));
    if (found) {
      const other = named.get(found);
      if (other !== undefined) problems.push(`${identityOf(entry)} is also in the file as ${other}.`);
      named.set(found, identityOf(entry));
      const fields = differences(entry, found);
      if (Object.keys(fields).length > 0) updates.push({ change: 'update', present: found, fields });
      else if (validate && !found.validated) updates.push({ change: 'validate', present: found });
    } else if (entry.id !== undefined) problems.push(`There is no subscription ${entry.id}.`);
    else {
      const twin = withoutKey.get(entry.url)?.find((one) => overlap(one, entry));
      if (twin) problems.push(twinProblem(entry, twin));
      creations.push({ change: 'create', wanted: entry });
    }
  }
  if (problems.length > 0) throw new UserError(`${problems.join('\n')}\nNothing was changed.`);
  const kept = new Set(wanted.map(identityOf));
  const unwanted = present.filter(({ key, id }) => key !== null && !kept.has(key) && !kept.has(id));
  return [
    ...updates,
    ...creations,
    ...(prune ? unwanted : []).map((one): Change => ({ change: 'delete', present: one })),
  ];
}

/**
 * Returns a warning for each new subscription that receives the same events at the same address as an existing one
 * whose key is not in the file and that stays. Either the key was renamed, or several files are in use.
 */
export function doubledEvents(changes: readonly Change[], wanted: readonly Wanted[], present: readonly Subscription[]) {
  const named = new Set(wanted.map(identityOf));
  const deleted = new Set(changes.flatMap((one) => (one.change === 'delete' ? [one.present] : [])));
  const stays = (one: Subscription) =>
    one.key !== null && !named.has(one.id) && !named.has(one.key) && !deleted.has(one);
  const staying = Map.groupBy(present.filter(stays), ({ url }) => url);
  return changes.flatMap((one) => {
    if (one.change !== 'create') return [];
    const { wanted: entry } = one;
    const twin = staying.get(entry.url)?.find((one) => overlap(one, entry) && shareTypes(one, entry));
    if (!twin) return [];
    const { key, id } = twin;
    return `${entry.key} receives the same events at ${entry.url} as ${key}, which is not in the file. If you renamed the key, write "id: ${id}" in its place, or delete the old one with --prune.`;
  });
}

function twinProblem({ key, url }: Wanted, { id }: Subscription): string {
  return `${key}: ${id}, which has no key, already receives events at ${url}. Write "id: ${id}" in place of the key, or delete that subscription.`;
}

function overlap(one: Pick<Subscription, 'environment'>, other: Pick<Wanted, 'environment'>): boolean {
  return one.environment === 'both' || other.environment === 'both' || one.environment === other.environment;
}

function shareTypes(one: Pick<Subscription, 'event_types'>, other: Pick<Wanted, 'event_types'>): boolean {
  const [types, others] = [one.event_types, other.event_types];
  return types === 'all' || others === 'all' || types.some((type) => others.includes(type));
}

function differences(wanted: Wanted, present: Subscription) {
  const changed = FIELDS.filter((field) => canonical(wanted[field]) !== canonical(present[field]));
  return Object.fromEntries(changed.map((field) => [field, { from: present[field], to: wanted[field] }]));
}

/** Event types are a selection: their order says nothing. */
function canonical(value: string | readonly string[]): string {
  return JSON.stringify(typeof value === 'string' ? value : [...value].sort());
}
