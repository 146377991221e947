/** Makes the next attempts of all deliveries now that wait for a retry, of those that a list shows. */
import type { TriedNow } from '@posthorn/operator-api';
import { PlayIcon } from '@primer/octicons-react';
import { changeAll, type QueryParameters } from '../api.ts';
import { useChange } from '../queries.ts';
import { AskingButton } from './confirm.tsx';
import { amountText } from './numbers.ts';

const QUESTION = {
  title: 'Try all that wait now?',
  text: 'The next attempts of all deliveries that wait for a retry and match the filters are made now. If an address still fails, it is paused as usual, and the rest is held. Deliveries to addresses that are not active keep waiting.',
  yes: 'Try them now',
};

/** `shownBy`: the filters of the list. */
export function TryWaiting({ shownBy }: { shownBy: QueryParameters }) {
  const tryAll = () => changeAll<TriedNow['data'][number]>('/v1/deliveries/try-now', shownBy, textOf);
  const tryNow = useChange(tryAll, { done: textOf });
  return <AskingButton label="Try all now" icon={PlayIcon} question={QUESTION} change={tryNow} />;
}

const textOf = ({ length: tried }: readonly string[]) =>
  tried === 0
    ? 'No delivery waits for a retry to an active address.'
    : `The next ${tried === 1 ? 'attempt' : 'attempts'} of ${amountText(tried, 'delivery', 'deliveries')} will be made now.`;
