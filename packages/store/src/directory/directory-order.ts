/** The orders of the directory of subscriptions, and the cursors of places in them. */
import { SUBSCRIPTION_ID, type SubscriptionSort } from '@posthorn/core';
import { BadCursor, decodeCursor, encodeCursor, newestCreatedFirst } from '../lists/page.ts';
import type { Listed } from './directory-part.ts';

/** Characters of an address that count for its place in the list; a cursor contains them. */
const MAX_URL_KEY = 120;

/** An order of the list, and the cursors of places in it. */
interface Order {
  compare(a: Place, b: Place): number;
  toCursor(place: Place): string;
  fromCursor(cursor: string): Place;
}
type Place = Pick<Listed, 'id' | 'text' | 'createdAtMs' | 'severity' | 'failingSinceMs'>;

/** What a cursor does not say of its place, because its order does not need it. */
const NOWHERE = { text: '', createdAtMs: 0, severity: 0, failingSinceMs: 0 };

export const ORDERS: Record<SubscriptionSort, Order> = {
  newest: {
    compare: newestCreatedFirst,
    toCursor: ({ id, createdAtMs }) => encodeCursor({ ms: createdAtMs, id }),
    fromCursor(cursor) {
      const { ms, id } = decodeCursor(cursor, SUBSCRIPTION_ID);
      return { ...NOWHERE, id, createdAtMs: ms };
    },
  },
  url: {
    compare(a, b) {
      const [x, y] = [urlKey(a), urlKey(b)];
      return x < y ? -1 : x > y ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
    },
    toCursor: (place) => Buffer.from(`${place.id} ${urlKey(place)}`).toString('base64url'),
    fromCursor(cursor) {
      const [, id = '', key = ''] = /^(\S+) (.*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
      if (!SUBSCRIPTION_ID.test(id)) throw new BadCursor();
      return { ...NOWHERE, id, text: `//${key}` };
    },
  },
  worst: {
    compare: (a, b) => b.severity - a.severity || a.failingSinceMs - b.failingSinceMs || newestCreatedFirst(a, b),
    toCursor({ id, createdAtMs, severity, failingSinceMs }) {
      return Buffer.from(`${severity} ${failingSinceMs} ${createdAtMs} ${id}`).toString('base64url');
    },
    fromCursor(cursor) {
      const text = Buffer.from(cursor, 'base64url').toString();
      const [, severity, failingSince, createdAt, id = ''] = /^(\d{1,2}) (\d{1,15}) (\d{1,15}) (\S+)$/.exec(text) ?? [];
      if (!SUBSCRIPTION_ID.test(id)) throw new BadCursor();
      return {
        id,
        text: '',
        createdAtMs: Number(createdAt),
        severity: Number(severity),
        failingSinceMs: Number(failingSince),
      };
    },
  },
};

/** The beginning of an address without its scheme. */
function urlKey({ text }: Place): string {
  const start = text.indexOf('//') + 2;
  return text.slice(start, start + MAX_URL_KEY);
}
