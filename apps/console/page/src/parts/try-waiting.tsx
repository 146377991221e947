/** Makes the next attempts of all deliveries now that wait for a retry, of those that a list shows. */
import { Text } from '@mantine/core';
import type { TriedNow } from '@posthorn/operator-api';
import { IconPlayerPlay } from '@tabler/icons-react';
import { call } from '../api.ts';
import { useChange } from '../queries.ts';
import { ActionButton } from './action-button.tsx';
import { askFirst } from './confirm.ts';
import { amountText } from './numbers.ts';

type ShownBy = Readonly<Record<string, string | null>>;

/** `shownBy`: the filters of the list. */
export function TryWaiting({ shownBy }: { shownBy: ShownBy }) {
  const tryNow = useChange(() => tryAllNow(shownBy), { done: textOf });
  const confirm = () =>
    askFirst({
      title: 'Try all that wait now?',
      children: (
        <Text size="sm">
          The next attempts of all deliveries that wait for a retry and match the filters are made now. If an address
          still fails, it is paused as usual, and the rest is held. Deliveries to addresses that are not active keep
          waiting.
        </Text>
      ),
      labels: { confirm: 'Try them now', cancel: 'Cancel' },
      onConfirm: () => tryNow.mutate(),
    });
  return (
    <ActionButton label="Try all now" icon={IconPlayerPlay} change={{ isPending: tryNow.isPending, mutate: confirm }} />
  );
}

/** Page by page, since a call looks at a limited number. Returns how many are due now. */
async function tryAllNow(shownBy: ShownBy): Promise<number> {
  const filters = Object.fromEntries(Object.entries(shownBy).filter(([, value]) => value));
  let tried = 0;
  let cursor: string | undefined;
  do {
    const { data, next_cursor: next } = await call<TriedNow>('POST', '/v1/deliveries/try-now', { ...filters, cursor });
    tried += data.length;
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  return tried;
}

const textOf = (tried: number) =>
  tried === 0
    ? 'No delivery waits for a retry to an active address.'
    : `The next ${tried === 1 ? 'attempt' : 'attempts'} of ${amountText(tried, 'delivery', 'deliveries')} will be made now.`;
