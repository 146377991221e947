/** What the pages of erasures share: the names of the fields, and the link that begins one. */
import type { Environment } from '@posthorn/core';
import type { Erasure } from '@posthorn/operator-api';
import { withQuery } from '../api.ts';

export const erasureFields: Record<Erasure['field'], string> = {
  session_id: 'Session id',
  user_id: 'User id',
  reference: 'Reference',
  event_id: 'Event id',
};

export const erasureOptions = Object.entries(erasureFields).map(([value, label]) => ({ value, label }));

export const unsentTexts: Record<Erasure['unsent'], string> = {
  end: 'End them: nothing more is sent',
  deliver: 'Send them first, then erase',
};

/** Returns the path of the form with a value filled in. Without an environment, it erases in both. */
export function erasePath(field: string, value: string, environment?: Environment): string {
  return withQuery('/erasures', { field, value, environment });
}
