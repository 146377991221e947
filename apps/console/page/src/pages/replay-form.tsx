/**
 * The form that starts bulk replays: addresses, filters and a canary. It shows the number of deliveries, and rehearses.
 */
import { Checkbox, Group, Select, SimpleGrid, Stack } from '@mantine/core';
import type { Rehearsal, StartedReplay } from '@posthorn/operator-api';
import { EyeIcon } from '@primer/octicons-react';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { call, givenOf, MAX_REPLAYED_ADDRESSES } from '../api.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { AddressesPicker } from '../parts/addresses-picker.tsx';
import { Note } from '../parts/layout.tsx';
import { amountText, countText } from '../parts/numbers.ts';
import { failureOptions } from '../parts/status.tsx';
import { eventTypes } from '../parts/subscription-fields.tsx';
import { TimePicker } from '../parts/time-picker.tsx';
import { useChange, useKept, useReplayCandidates } from '../queries.ts';
import { RehearsalResult } from './replay-rehearsal.tsx';

const ENVIRONMENTS = ['sandbox', 'production'] as const;

const errors = failureOptions.filter(({ value }) => value !== 'subscription_deleted');

const NO_FILTER = { from: null, to: null, failed_from: null, failed_to: null, event_type: null, error: null };
type Filter = Record<keyof typeof NO_FILTER, string | null>;

export function ReplayForm() {
  const [search] = useSearchParams();
  const linked = search.getAll('subscription_id').slice(0, MAX_REPLAYED_ADDRESSES);
  const [ids, setIds] = useState(linked);
  const [filter, setFilter] = useState<Filter>(NO_FILTER);
  const [canary, setCanary] = useState(true);
  useKept(filter !== NO_FILTER || String(ids) !== String(linked));
  return (
    <Stack>
      <AddressesPicker value={ids} onChange={setIds} />
      <Filters filter={filter} onChange={(change) => setFilter({ ...filter, ...change })} />
      <Checkbox
        label="Send 5 to each address first, and the others only when all 5 have arrived"
        checked={canary}
        onChange={(event) => setCanary(event.currentTarget.checked)}
      />
      <Buttons ids={ids} onChange={setIds} filter={filter} canary={canary} />
    </Stack>
  );
}

function Filters({ filter, onChange }: { filter: Filter; onChange: (change: Partial<Filter>) => void }) {
  const field = (name: keyof Filter) => ({
    value: filter[name],
    onChange: (value: string | null) => onChange({ [name]: value }),
  });
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <Select label="Event type" placeholder="Any event type" data={eventTypes} clearable {...field('event_type')} />
        <Select label="Error" placeholder="Any error" data={errors} clearable {...field('error')} />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        <TimePicker label="Created from" placeholder="The beginning" {...field('from')} />
        <TimePicker label="Created until" placeholder="Now" {...field('to')} />
        <TimePicker label="Failed from" placeholder="The beginning" {...field('failed_from')} />
        <TimePicker label="Failed until" placeholder="Now" {...field('failed_to')} />
      </SimpleGrid>
    </>
  );
}

interface ButtonsProps {
  ids: string[];
  onChange: (ids: string[]) => void;
  filter: Filter;
  canary: boolean;
}

function Buttons({ ids, onChange, filter, canary }: ButtonsProps) {
  const [only, another] = ids;
  const scope = givenOf(filter);
  const { known, count, error } = useReplayCandidates(ids, scope);
  const active = known.filter(({ status }) => status === 'active');
  const inactive = known.length - active.length;
  const isMixed = ENVIRONMENTS.every((one) => known.some(({ environment }) => environment === one));
  const addresses = another === undefined ? { subscription_id: only } : { subscription_ids: ids };
  const body = { ...addresses, ...scope, canary };
  const start = useChange(() => call<StartedReplay>('POST', '/v1/replays', body), {
    opens: ({ id }) => `/replays/${id}`,
  });
  const [rehearsed, setRehearsed] = useState<{ of: string; result: Rehearsal }>();
  const rehearse = useChange(
    // `of` tells which form the answer is for: the form may have changed when the answer arrives.
    async () => ({ of: JSON.stringify(body), result: await call<Rehearsal>('POST', '/v1/replays/rehearse', body) }),
    { onDone: setRehearsed },
  );
  const isChosen = only !== undefined && error === null && !isMixed;
  return (
    <>
      {isMixed && (
        <Group role="status">
          <Note>Some are for sandbox only, others for production only: replay them separately.</Note>
          {ENVIRONMENTS.map((kept) => {
            const remaining = known.filter(({ environment }) => environment === kept || environment === 'both');
            const mutate = () => onChange(remaining.map(({ id }) => id));
            return <ActionButton key={kept} label={`Keep those for ${kept}`} variant="default" change={{ mutate }} />;
          })}
        </Group>
      )}
      <Group>
        <ActionButton
          label="Rehearse"
          icon={EyeIcon}
          variant="default"
          change={rehearse}
          disabled={!isChosen || !count}
        />
        <ActionButton
          label={count && isChosen ? `Replay ${amountText(count, 'failed delivery', 'failed deliveries')}` : 'Replay'}
          change={start}
          disabled={!isChosen || !count || inactive > 0}
        />
        <Note aria-live="polite">
          {only === undefined && 'Choose an address to see the number of failed deliveries.'}
          {inactive > 0 && inactiveText(inactive, ids.length)}
          {isChosen && inactive === 0 && count === 0 && 'No failed deliveries match.'}
          {error?.message}
        </Note>
        {inactive > 0 && active.length > 0 && (
          <ActionButton
            label="Keep the active ones"
            variant="default"
            change={{ mutate: () => onChange(active.map(({ id }) => id)) }}
          />
        )}
      </Group>
      {/* A change of the form makes it out of date. */}
      {rehearsed?.of === JSON.stringify(body) && <RehearsalResult rehearsal={rehearsed.result} />}
    </>
  );
}

function inactiveText(inactive: number, addresses: number): string {
  if (addresses === 1) return 'The address is not active: resume or validate it first, or wait if it is resuming.';
  const [are, it, them] = inactive === 1 ? ['is', 'it', 'it'] : ['are', 'they', 'them'];
  return `${countText(inactive)} of ${countText(addresses)} addresses ${are} not active: resume or validate ${them} first, or wait if ${it} ${are} resuming.`;
}
