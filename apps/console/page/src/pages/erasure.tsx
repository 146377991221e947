/** One erasure: what it has found, its confirmation, and what it has erased. */
import { Alert, Checkbox, Group, Radio, SimpleGrid, Stack, Text } from '@mantine/core';
import type { Erasure } from '@posthorn/operator-api';
import { CircleSlashIcon } from '@primer/octicons-react';
import { useState } from 'react';
import { useParams } from 'react-router';
import { call } from '../api.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { Copyable } from '../parts/code.tsx';
import { AskingButton } from '../parts/confirm.tsx';
import { erasureFields, unsentTexts } from '../parts/erasure.ts';
import { Facts, FigureCard, Note, PageBody, Section } from '../parts/layout.tsx';
import { amountText, countText } from '../parts/numbers.ts';
import { Loaded, UnreadableNotice } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { Instant } from '../parts/time.tsx';
import { useChange, useErasure, usePost } from '../queries.ts';

export function ErasurePage() {
  const { id = '' } = useParams();
  const erasure = useErasure(id);
  return (
    <PageBody
      title="Erasure"
      back={{ to: '/erasures', label: 'Erasures' }}
      badge={erasure.data && <StatusBadge status={erasure.data.status} />}
    >
      <Loaded query={erasure} what="erasure">
        {/* With a key: what was ticked for one erasure must not count for another one. */}
        {(data) => <Content key={data.id} erasure={data} />}
      </Loaded>
    </PageBody>
  );
}

function Content({ erasure }: { erasure: Erasure }) {
  const { found, erased, status, unreadable } = erasure;
  const isOpen = status === 'counting' || status === 'counted';
  return (
    <Stack>
      <Section>
        <Stack gap="sm" align="flex-start">
          <Text size="sm" aria-live="polite">
            {stateOf(erasure)}
          </Text>
          {mayEndDeliveries(erasure) && <EndDeliveries id={erasure.id} />}
          {cannotGoOn(erasure) && <CancelButton id={erasure.id} done="It is being cancelled." />}
        </Stack>
      </Section>
      {unreadable && (
        <UnreadableNotice
          title={`${amountText(unreadable.events, 'stored event')} can't be read, and may have the value: the erasure waits for ${unreadable.events === 1 ? 'it' : 'them'}`}
          ids={unreadable.ids}
          count={unreadable.events}
        />
      )}
      <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="sm">
        <FigureCard label="Events found" value={countText(found.events)} />
        {isOpen ? (
          <>
            <FigureCard label="Their deliveries" value={countText(found.deliveries)} />
            <FigureCard label="Not sent yet" value={countText(found.unsent)} />
          </>
        ) : (
          <>
            <FigureCard label="Payloads erased" value={countText(erased.events)} />
            <FigureCard label="Deliveries ended unsent" value={countText(erased.ended)} />
            <FigureCard label="Responses deleted" value={countText(erased.responses)} />
          </>
        )}
      </SimpleGrid>
      {status === 'counted' && <Confirmation erasure={erasure} />}
      <Section title="Details">
        <Facts
          facts={{
            Id: <Copyable value={erasure.id} what="id" />,
            [erasureFields[erasure.field]]: erasure.value ?? 'Not kept',
            'Hash of the value': <Copyable value={erasure.value_hmac} what="hash" />,
            Environment: erasure.environment ?? 'both',
            'Unsent deliveries': !isOpen && unsentTexts[erasure.unsent],
            Operator: erasure.operator,
            'Confirmed by': erasure.confirmed_by,
            Requested: <Instant at={erasure.created_at} />,
            Confirmed: erasure.confirmed_at && <Instant at={erasure.confirmed_at} />,
            Ended: erasure.finished_at && <Instant at={erasure.finished_at} />,
          }}
        />
      </Section>
      {!isOpen && (
        <Note size="xs">
          Files of Redis (append-only file, snapshots, backups) keep old bytes until they are rewritten: see
          docs/erasure.md.
        </Note>
      )}
    </Stack>
  );
}

function Confirmation({ erasure: { id, found, unsent: requested } }: { erasure: Erasure }) {
  const [unsent, setUnsent] = useState<string>(requested);
  const [isSure, setIsSure] = useState(false);
  const confirm = useChange(() => call<Erasure>('POST', `/v1/erasures/${id}/confirm`, { unsent }), {
    done: 'Confirmed: the payloads are being erased.',
  });
  const payloads = amountText(found.events, 'payload');
  return (
    <Alert color="red" variant="light" title="This cannot be undone" icon={<CircleSlashIcon size={18} />}>
      <Stack gap="sm">
        {found.unsent > 0 && (
          <Radio.Group
            label={`${amountText(found.unsent, 'delivery has', 'deliveries have')} not ended`}
            value={unsent}
            onChange={setUnsent}
          >
            <Stack gap={6} mt={6}>
              <Radio value="end" label={unsentTexts.end} />
              <Radio value="deliver" label={unsentTexts.deliver} />
            </Stack>
          </Radio.Group>
        )}
        <Checkbox
          label="The value below is the one that was asked for"
          checked={isSure}
          onChange={(event) => setIsSure(event.currentTarget.checked)}
        />
        <Group>
          <ActionButton
            label={found.events === 0 ? 'Erase what arrives until now' : `Erase ${payloads}`}
            change={confirm}
            disabled={!isSure}
            color="red"
          />
          <CancelButton id={id} done="Cancelled." />
        </Group>
      </Stack>
    </Alert>
  );
}

/** Whether no key opens the value of a running erasure any more. */
const cannotGoOn = ({ status, value }: Erasure) => status === 'running' && value === null;

function CancelButton({ id, done }: { id: string; done: string }) {
  const cancel = usePost<Erasure>(`/v1/erasures/${id}/cancel`, { done });
  return <ActionButton label="Cancel" variant="default" change={cancel} />;
}

/** Whether a confirmed erasure waits, for deliveries or for an event that can't be read, and has not ended them yet. */
const mayEndDeliveries = ({ status, unsent, unreadable }: Erasure) =>
  unsent === 'deliver' && (status === 'waiting' || (status === 'running' && unreadable !== undefined));

/** Ends the deliveries for which an erasure waits: those that are held may take weeks. */
function EndDeliveries({ id }: Pick<Erasure, 'id'>) {
  const end = useChange(() => call<Erasure>('POST', `/v1/erasures/${id}/confirm`, { unsent: 'end' }), {
    done: 'The deliveries are being ended.',
  });
  const question = {
    title: 'End the deliveries that it waits for?',
    text: "They fail with the reason “erased”, nothing more is sent, and the payloads are erased. This can't be undone.",
    yes: 'End them',
    no: 'Keep waiting',
    isFinal: true,
  };
  return <AskingButton label="End the deliveries" question={question} change={end} variant="default" />;
}

function stateOf(erasure: Erasure): string {
  const { status, found, erased } = erasure;
  const events = amountText(found.events, 'event');
  if (cannotGoOn(erasure))
    return `It can't go on: no key in SECRET_ENCRYPTION_KEY opens its value. ${countText(erased.events)} of ${events} erased. Cancel it, and request it again.`;
  switch (status) {
    case 'counting':
      return 'Looking through all stored events. This takes seconds to minutes.';
    case 'counted':
      return found.events === 0
        ? 'No stored event has this value.'
        : `${events} found. Nothing is erased until you confirm it; without that it is cancelled an hour after the count.`;
    case 'running':
      return `${countText(erased.events)} of ${events} erased. A last pass over all events begins a minute after the confirmation.`;
    case 'waiting':
      return `${countText(erased.events)} of ${events} erased. The others follow when all their deliveries have ended.`;
    case 'done':
      return `Done: ${erased.events === 1 ? 'the payload of 1 event is' : `the payloads of ${countText(erased.events)} events are`} erased.`;
    case 'cancelled':
      return erased.events === 0
        ? 'Cancelled: nothing was erased.'
        : `Cancelled: ${countText(erased.events)} of ${events} erased.`;
  }
}
