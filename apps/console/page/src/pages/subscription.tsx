/** One subscription: its state, its deliveries, and all actions on it. */

import {
  Alert,
  Anchor,
  Button,
  Drawer,
  Group,
  Menu,
  Modal,
  Progress,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { modals } from '@mantine/modals';
import type { Delivery, Subscription, SubscriptionWithSecret } from '@posthorn/operator-api';
import {
  IconChevronDown,
  IconKey,
  IconPencil,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerTrackNext,
  IconSend,
  IconShieldCheck,
  IconTrash,
} from '@tabler/icons-react';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { call } from '../api.ts';
import { AttemptTimeline } from '../parts/attempt-timeline.tsx';
import { AttemptsChart, percent } from '../parts/attempts-chart.tsx';
import { Copyable } from '../parts/code.tsx';
import { DeliveryTable } from '../parts/delivery-table.tsx';
import { Facts, FigureCard, PageBody, Section } from '../parts/layout.tsx';
import { SecretOnce } from '../parts/secret.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { reasonOf, StatusBadge } from '../parts/status.tsx';
import { environmentLabel, type SubscriptionFields, SubscriptionForm } from '../parts/subscription-fields.tsx';
import { durationText, Instant } from '../parts/time.tsx';
import { useAddressAttempts, useChange, useDeliveries, useDelivery, useOverview, useSubscription } from '../queries.ts';

const RECENT = 10;

export function SubscriptionPage() {
  const { id = '' } = useParams();
  const subscription = useSubscription(id);
  const back = { to: '/subscriptions', label: 'Subscriptions' };
  if (!subscription.data) {
    return (
      <PageBody title="Subscription" back={back}>
        <Loaded query={subscription} what="subscription">
          {() => null}
        </Loaded>
      </PageBody>
    );
  }
  const { url, status } = subscription.data;
  const heading = (
    <Group gap="sm" wrap="wrap" style={{ minWidth: 0 }}>
      <Title order={1} size="h3" style={{ overflowWrap: 'anywhere' }}>
        {url}
      </Title>
      <StatusBadge status={status} />
    </Group>
  );
  return (
    <PageBody title={url} heading={heading} back={back} actions={<Actions subscription={subscription.data} />}>
      <Loaded query={subscription} what="subscription">
        {(data) => <Content subscription={data} />}
      </Loaded>
    </PageBody>
  );
}

function Content({ subscription }: { subscription: Subscription }) {
  const { id, status, consecutive_failures: failures } = subscription;
  const attempts = useAddressAttempts(id);
  const recent = useDeliveries({ subscription_id: id, limit: RECENT });
  const pauseAfter = useOverview().data?.rules.pause_after ?? 20;
  const reason = reasonOf(subscription);
  const isWell = status === 'active' && !reason;
  return (
    <Stack>
      {!isWell && (
        <Alert
          color={status === 'refused' ? 'red' : status === 'active' ? 'yellow' : 'orange'}
          title={explain(subscription)}
        >
          {reason}
          {subscription.held_deliveries > 0 && ` ${heldText(subscription.held_deliveries)}`}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
        <FigureCard
          label="Consecutive failures"
          value={
            <>
              {failures}{' '}
              <Text span c="dimmed" fz="sm">
                of {pauseAfter}
              </Text>
            </>
          }
          hint={
            <Progress
              value={(100 * failures) / pauseAfter}
              color={failures >= pauseAfter / 2 ? 'red' : 'orange'}
              size="sm"
              mt={6}
              aria-label={`${failures} of ${pauseAfter} consecutive failures`}
            />
          }
        />
        <FigureCard
          label="Held deliveries"
          value={subscription.held_deliveries.toLocaleString('en')}
          to={`/deliveries?subscription_id=${id}&status=held`}
        />
        <FigureCard
          label="Success rate, 24 hours"
          value={percent(attempts.data?.success_rate ?? null)}
          hint={`of ${attempts.data?.attempts.toLocaleString('en') ?? '–'} attempts`}
        />
        <FigureCard
          label="Mean attempt, 24 hours"
          value={attempts.data?.mean_ms == null ? '–' : durationText(attempts.data.mean_ms)}
        />
      </SimpleGrid>
      <Section title="Details">
        <Facts
          facts={{
            Id: <Copyable value={id} what="id" />,
            Environment: environmentLabel(subscription.environment),
            'Event types': subscription.event_types === 'all' ? 'All' : subscription.event_types.join(', '),
            Description: subscription.description || '–',
            Created: <Instant at={subscription.created_at} />,
            Changed: <Instant at={subscription.updated_at} />,
            ...(subscription.previous_secret_until
              ? { 'Previous secret signs until': <Instant at={subscription.previous_secret_until} /> }
              : {}),
          }}
        />
      </Section>
      <Section title="Attempts, last 24 hours">
        <Loaded query={attempts} what="chart">
          {({ series }) => <AttemptsChart series={series} unit="hour" height={160} />}
        </Loaded>
      </Section>
      <Section
        title="Recent deliveries"
        flush
        aside={
          <Anchor component={Link} to={`/deliveries?subscription_id=${id}`} size="sm">
            All deliveries
          </Anchor>
        }
      >
        <Loaded query={recent} what="list of deliveries">
          {({ pages }) =>
            pages[0]!.data.length === 0 ? (
              <Empty title="No deliveries yet">
                {status === 'active'
                  ? 'Send a test, or wait for the first event.'
                  : 'Deliveries start when its address is validated.'}
              </Empty>
            ) : (
              <DeliveryTable deliveries={pages[0]!.data} />
            )
          }
        </Loaded>
      </Section>
    </Stack>
  );
}

function heldText(count: number): string {
  return count === 1
    ? '1 delivery is held, not lost.'
    : `${count.toLocaleString('en')} deliveries are held, none is lost.`;
}

function explain({ status }: Subscription): string {
  switch (status) {
    case 'awaiting_validation':
      return 'Nothing is sent until the address is validated';
    case 'paused':
      return 'Paused: nothing is sent';
    case 'refused':
      return 'Refused: nothing is sent';
    case 'active':
      return 'The last validation found a problem';
  }
}

function Actions({ subscription }: { subscription: Subscription }) {
  const { id, url, status } = subscription;
  const navigate = useNavigate();
  const [editing, edit] = useDisclosure(false);
  const [rotating, rotate] = useDisclosure(false);
  const [testId, setTestId] = useState<string>();
  const path = `/v1/subscriptions/${id}`;
  const validate = useChange(() => call<Subscription>('POST', `${path}/validate`), {
    done: 'The address was validated.',
  });
  const pause = useChange(() => call<Subscription>('POST', `${path}/pause`), {
    done: 'Paused. Deliveries are held from now on.',
  });
  const resume = useChange(() => call<Subscription>('POST', `${path}/resume`), {
    done: 'Resumed. What was held goes out now.',
  });
  const test = useChange(() => call<Delivery>('POST', `${path}/test`), { onDone: (made) => setTestId(made.id) });
  const remove = useChange(() => call('DELETE', path), { done: 'Deleted.', onDone: () => navigate('/subscriptions') });
  const askToDelete = () =>
    modals.openConfirmModal({
      title: 'Delete this subscription?',
      children: (
        <Text size="sm">
          Nothing more is sent to <b>{url}</b>. Deliveries that have not ended yet end as failed and can't be replayed.
          This can't be undone.
        </Text>
      ),
      labels: { confirm: 'Delete it', cancel: 'Keep it' },
      confirmProps: { color: 'red' },
      onConfirm: () => remove.mutate(undefined),
    });
  return (
    <>
      {status === 'active' && (
        <Button
          variant="default"
          leftSection={<IconSend size={16} />}
          loading={test.isPending}
          onClick={() => test.mutate(undefined)}
        >
          Send test
        </Button>
      )}
      {status === 'paused' && (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          loading={resume.isPending}
          onClick={() => resume.mutate(undefined)}
        >
          Resume
        </Button>
      )}
      {(status === 'awaiting_validation' || status === 'refused') && (
        <Button
          leftSection={<IconShieldCheck size={16} />}
          loading={validate.isPending}
          onClick={() => validate.mutate(undefined)}
        >
          Validate
        </Button>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button
            variant="default"
            rightSection={<IconChevronDown size={16} />}
            loading={remove.isPending || pause.isPending}
          >
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconPencil size={16} />} onClick={edit.open}>
            Edit
          </Menu.Item>
          {(status === 'active' || status === 'paused') && (
            <Menu.Item leftSection={<IconShieldCheck size={16} />} onClick={() => validate.mutate(undefined)}>
              Validate again
            </Menu.Item>
          )}
          {status === 'active' && (
            <Menu.Item leftSection={<IconPlayerPause size={16} />} onClick={() => pause.mutate(undefined)}>
              Pause
            </Menu.Item>
          )}
          <Menu.Item leftSection={<IconKey size={16} />} onClick={rotate.open}>
            Rotate secret
          </Menu.Item>
          <Menu.Item
            leftSection={<IconPlayerTrackNext size={16} />}
            component={Link}
            to={`/replays?subscription_id=${id}`}
          >
            Replay failed deliveries
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item color="red" leftSection={<IconTrash size={16} />} onClick={askToDelete}>
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <EditModal subscription={subscription} opened={editing} close={edit.close} />
      <RotateModal subscription={subscription} opened={rotating} close={rotate.close} />
      <Drawer
        opened={testId !== undefined}
        onClose={() => setTestId(undefined)}
        position="right"
        title="Test delivery"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {testId && <TestDelivery id={testId} />}
      </Drawer>
    </>
  );
}

/** A test delivery, refreshed until it has ended. */
function TestDelivery({ id }: { id: string }) {
  const delivery = useDelivery(id);
  return (
    <Loaded query={delivery} what="delivery">
      {(data) => (
        <Stack>
          <StatusBadge status={data.status} />
          <AttemptTimeline delivery={data} />
          <Anchor component={Link} to={`/deliveries/${id}`} size="sm">
            The whole delivery
          </Anchor>
        </Stack>
      )}
    </Loaded>
  );
}

function EditModal({
  subscription,
  opened,
  close,
}: {
  subscription: Subscription;
  opened: boolean;
  close: () => void;
}) {
  const save = useChange(
    (fields: SubscriptionFields) => call<Subscription>('PATCH', `/v1/subscriptions/${subscription.id}`, fields),
    { done: 'Saved.', onDone: close, quiet: true },
  );
  return (
    <Modal
      opened={opened}
      onClose={close}
      title="Edit subscription"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Text size="sm" c="dimmed" mb="md">
        A new address has to be validated again; until then deliveries are held.
      </Text>
      <SubscriptionForm
        initial={subscription}
        submitLabel="Save"
        onSubmit={(fields) => save.mutateAsync(fields)}
        onCancel={close}
      />
    </Modal>
  );
}

function RotateModal({
  subscription,
  opened,
  close,
}: {
  subscription: Subscription;
  opened: boolean;
  close: () => void;
}) {
  const [overlap, setOverlap] = useState('24h');
  const rotate = useChange((value: string) =>
    call<SubscriptionWithSecret>('POST', `/v1/subscriptions/${subscription.id}/rotate-secret`, { overlap: value }),
  );
  const end = () => {
    close();
    rotate.reset();
  };
  return (
    <Modal
      opened={opened}
      onClose={end}
      title="Rotate the signing secret"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
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
            A new secret is made. During the overlap each delivery is signed with both, so that the receiver can change
            over without missing one.
          </Text>
          <Select
            label="Overlap"
            data={[
              { value: '0s', label: 'None: the old secret stops at once' },
              { value: '1h', label: '1 hour' },
              { value: '24h', label: '24 hours' },
              { value: '7d', label: '7 days' },
            ]}
            value={overlap}
            onChange={(value) => setOverlap(value ?? '24h')}
            allowDeselect={false}
          />
          <Group>
            <Button loading={rotate.isPending} onClick={() => rotate.mutate(overlap)}>
              Rotate
            </Button>
            <Button variant="default" onClick={end}>
              Cancel
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
