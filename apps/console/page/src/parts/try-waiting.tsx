/** Makes the next attempts of all deliveries now that wait for a retry, of those that a list shows. */
import { Text } from '@mantine/core';
import type { TriedNow } from '@posthorn/operator-api';
import { IconPlayerPlay } from '@tabler/icons-react';
import { changeAll } from '../api.ts';
import { useChange } from '../queries.ts';
import { ActionButton } from './action-button.tsx';
import { askFirst } from './confirm.ts';
import { amountText } from './numbers.ts';

type ShownBy = Readonly<Record<string, string | null>>;

/** `shownBy`: the filters of the list. */
export function TryWaiting({ shownBy }: { shownBy: ShownBy }) {
  const tryAll = () => changeAll<TriedNow['data'][number]>('/v1/deliveries/try-now', shownBy, textOf);
  const tryNow = useChange(tryAll, { done: textOf });
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

const textOf = ({ length: tried }: readonly string[]) =>
  tried === 0
    ? 'No delivery waits for a retry to an active address.'
    : `The next ${tried === 1 ? 'attempt' : 'attempts'} of ${amountText(tried, 'delivery', 'deliveries')} will be made now.`;
