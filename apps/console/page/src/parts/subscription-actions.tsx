/** All actions on a subscription: buttons, a menu, and the dialogs that they open. */
import { Alert, Button, Drawer, Group, Menu, Modal, Select, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Delivery, Subscription, SubscriptionWithSecret } from '@posthorn/operator-api';
import {
  BeakerIcon,
  ChevronDownIcon,
  type Icon,
  IterationsIcon,
  KeyIcon,
  PaperAirplaneIcon,
  PauseIcon,
  PencilIcon,
  PlayIcon,
  ShieldCheckIcon,
  TrashIcon,
} from '@primer/octicons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import { call } from '../api.ts';
import { useChange, useDelivery, usePost } from '../queries.ts';
import { ActionButton } from './action-button.tsx';
import { AttemptTimeline } from './attempt-timeline.tsx';
import { askFirst } from './confirm.tsx';
import { useKeptFocus } from './kept-focus.ts';
import { Note, PageLink } from './layout.tsx';
import { countText } from './numbers.ts';
import { SecretOnce, useNewSecret } from './secret.tsx';
import { Loaded } from './states.tsx';
import { StatusBadge } from './status.tsx';
import { type SubscriptionFields, SubscriptionForm } from './subscription-fields.tsx';
import { Instant } from './time.tsx';
import { validationNotice } from './validation.tsx';

export function SubscriptionActions({ subscription }: { subscription: Subscription }) {
  const { id, url, status, held_deliveries: held } = subscription;
  const [isEditing, edit] = useDisclosure(false);
  const [isRotating, rotate] = useDisclosure(false);
  const path = `/v1/subscriptions/${id}`;
  const validate = usePost(`${path}/validate`, { done: validationNotice });
  const pause = usePost(`${path}/pause`, { done: 'Paused. Deliveries are held from now on.' });
  const resume = usePost(`${path}/resume`, { done: 'Resumed. If deliveries are held, one goes first.' });
  const test = usePost<Delivery>(`${path}/test`);
  const remove = useChange(() => call('DELETE', path), { done: 'Deleted.', opens: () => '/subscriptions' });
  const isPending = remove.isPending || pause.isPending;
  const more = useKeptFocus(isPending);
  // A dialog returns the focus to what had it before, which must not be an item of the menu.
  const fromMenu = (action: () => void) => () => {
    more.current?.focus();
    action();
  };
  const deletion = {
    title: 'Delete this subscription?',
    text: (
      <>
        <Text span size="sm" fw={600} mb="xs" lineClamp={3} style={{ overflowWrap: 'anywhere' }}>
          {url}
        </Text>
        Nothing more is sent to it. Deliveries that have not ended yet
        {held > 0 && `, ${countText(held)} of them held,`} fail and can't be replayed. This can't be undone.
      </>
    ),
    yes: 'Delete it',
    no: 'Keep it',
    isFinal: true,
  };
  return (
    <>
      {status === 'active' && (
        <ActionButton label="Send test" icon={PaperAirplaneIcon} change={test} variant="default" />
      )}
      {status === 'paused' && <ActionButton label="Resume" icon={PlayIcon} change={resume} />}
      {(status === 'awaiting_validation' || status === 'refused') && (
        <ActionButton label="Validate" icon={ShieldCheckIcon} change={validate} />
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button ref={more} variant="default" rightSection={<ChevronDownIcon size={16} />} loading={isPending}>
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Action label="Edit" icon={PencilIcon} onClick={fromMenu(edit.open)} />
          {(status === 'active' || status === 'paused') && (
            <Action label="Validate again" icon={ShieldCheckIcon} onClick={fromMenu(validate.mutate)} />
          )}
          {status === 'active' && <Action label="Pause" icon={PauseIcon} onClick={fromMenu(pause.mutate)} />}
          <Action label="Rotate secret" icon={KeyIcon} onClick={fromMenu(rotate.open)} />
          <Menu.Item leftSection={<IterationsIcon size={16} />} component={Link} to={`/replays?subscription_id=${id}`}>
            Replay failed deliveries
          </Menu.Item>
          <Menu.Item leftSection={<BeakerIcon size={16} />} component={Link} to={`/subscriptions/${id}/signature`}>
            Check a signature
          </Menu.Item>
          <Menu.Divider />
          <Action
            label="Delete"
            icon={TrashIcon}
            onClick={fromMenu(() => askFirst(deletion, remove.mutate))}
            color="red"
          />
        </Menu.Dropdown>
      </Menu>
      <EditModal subscription={subscription} opened={isEditing} close={edit.close} />
      <RotateModal subscription={subscription} opened={isRotating} close={rotate.close} />
      <Drawer opened={test.data !== undefined} onClose={test.reset} position="right" title="Test delivery">
        {test.data && <TestDelivery id={test.data.id} />}
      </Drawer>
    </>
  );
}

interface ActionProps {
  label: string;
  icon: Icon;
  onClick: () => void;
  color?: 'red';
}

function Action({ label, icon: Icon, ...item }: ActionProps) {
  return (
    <Menu.Item leftSection={<Icon size={16} />} {...item}>
      {label}
    </Menu.Item>
  );
}

/** A test delivery and its attempts, refreshed. */
function TestDelivery({ id }: { id: string }) {
  const delivery = useDelivery(id);
  return (
    <Loaded query={delivery} what="delivery">
      {(data) => (
        <Stack>
          <StatusBadge status={data.status} />
          <AttemptTimeline delivery={data} />
          <PageLink to={`/deliveries/${id}`}>Open the delivery</PageLink>
        </Stack>
      )}
    </Loaded>
  );
}

interface DialogProps {
  subscription: Subscription;
  opened: boolean;
  close: () => void;
}

/** The ways to close a dialog without its buttons, all of them or none. */
const waysToClose = (mayClose: boolean) =>
  ({ closeOnEscape: mayClose, closeOnClickOutside: mayClose, withCloseButton: mayClose }) as const;

function EditModal({ subscription, opened, close }: DialogProps) {
  // The fields as they were when the dialog was opened. Only what differs is sent: another operator may have changed
  // the rest.
  const [before, setBefore] = useState(subscription);
  if (!opened && before !== subscription) setBefore(subscription);
  const save = useChange(
    async (fields: SubscriptionFields) => {
      const changes = changesOf(fields, before);
      if (Object.keys(changes).length > 0) await call('PATCH', `/v1/subscriptions/${subscription.id}`, changes);
    },
    { done: 'Saved.', onDone: close, quiet: true },
  );
  // A dialog that is closed shows no error.
  return (
    <Modal opened={opened} onClose={close} title="Edit subscription" size="lg" {...waysToClose(!save.isPending)}>
      <Note mb="md">A new address must be validated again. Until then, its deliveries are held.</Note>
      <SubscriptionForm initial={before} submitLabel="Save" onSubmit={save.mutateAsync} onCancel={close} />
    </Modal>
  );
}

/** The fields that differ from those before. */
function changesOf(fields: SubscriptionFields, before: SubscriptionFields): Partial<SubscriptionFields> {
  const names = Object.keys(fields) as (keyof SubscriptionFields)[];
  const changed = names.filter((name) => String(fields[name]) !== String(before[name]));
  return Object.fromEntries(changed.map((name) => [name, fields[name]]));
}

const overlaps = [
  { value: '0s', label: 'None: the old secret stops at once' },
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
];

function RotateModal({ subscription, opened, close }: DialogProps) {
  const [overlap, setOverlap] = useState('24h');
  const rotate = useNewSecret(() =>
    call<SubscriptionWithSecret>('POST', `/v1/subscriptions/${subscription.id}/rotate-secret`, { overlap }),
  );
  const end = () => {
    close();
    rotate.reset();
  };
  // The secret is shown this once: a key or a click beside the dialog must not lose it, also while it is created.
  const mayClose = !rotate.isPending && !rotate.data;
  return (
    <Modal opened={opened} onClose={end} title="Rotate the signing secret" size="lg" {...waysToClose(mayClose)}>
      {rotate.data ? (
        <Stack>
          <SecretOnce secret={rotate.data.secret} />
          <Group>
            <Button onClick={end}>I have copied it</Button>
          </Group>
        </Stack>
      ) : (
        <Stack>
          <Text size="sm">
            This creates a new secret. During the overlap, each delivery is signed with both secrets, so that the
            receiver can change over without missing one.
          </Text>
          {subscription.previous_secret_until && (
            <Alert color="orange" title="The secret before the current one still signs">
              It would until <Instant at={subscription.previous_secret_until} />. A rotation ends it at once: does the
              receiver have the current one?
            </Alert>
          )}
          <Select
            label="Overlap"
            data={overlaps}
            value={overlap}
            onChange={(value) => setOverlap(value ?? '24h')}
            allowDeselect={false}
          />
          <Group>
            <ActionButton label="Rotate" change={rotate} />
            <Button variant="default" onClick={end} disabled={rotate.isPending}>
              Cancel
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
