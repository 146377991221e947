/** One subscription: its state, its attempts and its newest deliveries. */
import { Alert, Group, Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import type { Subscription } from '@posthorn/operator-api';
import { useParams } from 'react-router';
import { shortAddress } from '../parts/address.tsx';
import { AttemptsChart } from '../parts/attempts-chart.tsx';
import { Copyable } from '../parts/code.tsx';
import { ShowChanges } from '../parts/data-table.tsx';
import { DeliveryTable } from '../parts/delivery-table.tsx';
import { ErrorLine } from '../parts/error-line.tsx';
import { Facts, FigureCard, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { amountText, countText, durationText, percentText, secondsText } from '../parts/numbers.ts';
import { Empty, Loaded } from '../parts/states.tsx';
import { AddressBadges, statusTexts } from '../parts/status.tsx';
import { SubscriptionActions } from '../parts/subscription-actions.tsx';
import { environmentLabels } from '../parts/subscription-fields.tsx';
import { Instant } from '../parts/time.tsx';
import { ValidationResult } from '../parts/validation.tsx';
import { useAddressAttempts, useDeliveries, useOverview, useSubscription } from '../queries.ts';

const RECENT = 10;

export function SubscriptionPage() {
  const { id = '' } = useParams();
  const subscription = useSubscription(id);
  const { data } = subscription;
  return (
    <PageBody
      title={data?.url ?? 'Subscription'}
      // So the status and the buttons below it stay on the first screen.
      heading={data && shortAddress(data.url)}
      badge={
        data && (
          <AddressBadges
            status={data.resuming ? 'resuming' : data.status}
            isFailing={data.health.state === 'failing'}
          />
        )
      }
      back={{ to: '/subscriptions', label: 'Subscriptions' }}
      actions={data && <SubscriptionActions key={data.id} subscription={data} />}
    >
      <Loaded query={subscription} what="subscription">
        {(loaded) => <Content subscription={loaded} />}
      </Loaded>
    </PageBody>
  );
}

function Content({ subscription }: { subscription: Subscription }) {
  const { id, url, status, status_reason: reason, paused_since: pausedSince, held_deliveries: held } = subscription;
  const attempts = useAddressAttempts(id);
  const releaseRate = useOverview().data?.rules.release_rate;
  return (
    <Stack>
      {status !== 'paused' || subscription.health.state === 'failing' ? (
        <HealthAlert health={subscription.health} />
      ) : null}
      {(status !== 'active' || reason) && (
        <Alert color={alerts[status].color} title={alerts[status].title}>
          {reason && statusTexts[reason]}
          {status === 'refused' && ' Correct its url if it is wrong (More, Edit), then validate it again.'}
          {pausedSince && (
            <>
              {' '}
              Paused since <Instant at={pausedSince} />.
            </>
          )}
          {held > 0 && ` ${amountText(held, 'delivery is', 'deliveries are')} held, not lost.`}
          {status === 'paused' && held === 1 && ' Resume sends it.'}
          {status === 'paused' && held > 1 && ' Resume sends one first, and the others if it arrives.'}
          <FailedResume resume={subscription.last_resume} />
        </Alert>
      )}
      {subscription.resuming && (
        <Alert color="blue" title="Resuming: one held delivery goes first">
          If it succeeds, {held > 0 && `the ${countText(held)} held and `}all new deliveries follow. If it fails, the
          address is paused again and they stay held. <ResumeDelivery resume={subscription.last_resume} />
        </Alert>
      )}
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing="sm">
        <ConsecutiveFailures count={subscription.consecutive_failures} />
        <FigureCard
          label="Held deliveries"
          value={countText(held)}
          hint={releaseText(subscription, releaseRate)}
          to={`/deliveries?subscription_id=${id}&status=held`}
        />
        <FigureCard
          label="Parked deliveries"
          value={countText(subscription.parked_deliveries)}
          hint={subscription.parked_deliveries > 0 && 'wait for a free slot'}
        />
        <FigureCard
          label="Success rate, 24 hours"
          value={percentText(attempts.data?.success_rate)}
          hint={attempts.data && `of ${amountText(attempts.data.attempts, 'attempt')}`}
        />
        <FigureCard label="Mean attempt, 24 hours" value={durationText(attempts.data?.mean_ms)} />
      </SimpleGrid>
      <Section
        title="Details"
        aside={<PageLink to={`/audit?subscription_id=${subscription.id}`}>Audit trail</PageLink>}
      >
        <Facts
          facts={{
            Id: <Copyable value={id} what="id" />,
            Address: shortAddress(url) !== url && <Copyable value={url} what="address" />,
            Environment: environmentLabels[subscription.environment],
            'Event types': subscription.event_types === 'all' ? 'All' : subscription.event_types.join(', '),
            Description: subscription.description || '–',
            Created: <Instant at={subscription.created_at} />,
            Changed: <Instant at={subscription.updated_at} />,
            'Previous secret signs until': subscription.previous_secret_until && (
              <Instant at={subscription.previous_secret_until} />
            ),
          }}
        />
      </Section>
      {subscription.last_validation && (
        <Section title="Last validation">
          <ValidationResult validation={subscription.last_validation} />
        </Section>
      )}
      <Section title="Attempts, last 24 hours">
        <Loaded query={attempts} what="chart">
          {({ series }) => <AttemptsChart series={series} unit="hour" height={160} />}
        </Loaded>
      </Section>
      <RecentDeliveries subscription={subscription} />
    </Stack>
  );
}

/** How long it takes to send what is held, once the address is active. */
function releaseText({ status, held_deliveries: held }: Subscription, perSecond: number | null | undefined) {
  if (held === 0 || !perSecond) return undefined;
  const seconds = Math.ceil(held / perSecond);
  return `about ${secondsText(seconds)} at ${countText(perSecond)} a second${status === 'active' ? '' : ', once active'}`;
}

/** Says that the last resume failed, and links the delivery that was sent. */
function FailedResume({ resume }: { resume: Subscription['last_resume'] }) {
  if (resume?.outcome !== 'failed') return null;
  return (
    <Text size="sm" mt={4}>
      The last resume, <Instant at={resume.at} />, failed: one delivery was sent and failed. No other was sent.{' '}
      <ResumeDelivery resume={resume} />
    </Text>
  );
}

function ResumeDelivery({ resume }: { resume: Subscription['last_resume'] }) {
  if (!resume?.delivery_id) return null;
  return <PageLink to={`/deliveries/${resume.delivery_id}`}>Open that delivery</PageLink>;
}

/** The verdict on the address, its most frequent error, and when an attempt last succeeded. */
function HealthAlert({ health }: { health: Subscription['health'] }) {
  const { state, verdict, error, last_succeeded_at: lastSucceeded, failed_in_a_row: failed } = health;
  if (verdict === null) return null;
  return (
    <Alert color={state === 'failing' ? 'red' : 'yellow'} title={verdict}>
      <ErrorLine error={error} />
      <Text size="sm">
        {failed > 0 && `${amountText(failed, 'failed attempt')} in a row. `}
        {lastSucceeded ? (
          <>
            Last success: <Instant at={lastSucceeded} />.
          </>
        ) : (
          'No attempt has succeeded yet.'
        )}
      </Text>
    </Alert>
  );
}

/** The number of consecutive failures, and how close it is to the number that pauses the address. */
function ConsecutiveFailures({ count: counted }: { count: number }) {
  const pauseAfter = useOverview().data?.rules.pause_after ?? 20;
  // The limit may have been lowered since.
  const count = Math.min(counted, pauseAfter);
  const value = (
    <>
      {count}{' '}
      <Text span c="dimmed" fz="sm">
        of {pauseAfter} deliveries
      </Text>
    </>
  );
  const bar = (
    <Progress
      value={(100 * count) / pauseAfter}
      color={count >= pauseAfter / 2 ? 'red' : 'orange'}
      size="sm"
      mt={6}
      aria-label={`${count} of ${pauseAfter} consecutive failures`}
    />
  );
  return <FigureCard label="Consecutive failures" value={value} hint={bar} />;
}

function RecentDeliveries({ subscription: { id, status } }: { subscription: Subscription }) {
  const recent = useDeliveries({ subscription_id: id, limit: RECENT });
  const more = (
    <Group gap="sm" role="status">
      <ShowChanges list={recent} />
      <PageLink to={`/deliveries?subscription_id=${id}`}>All deliveries</PageLink>
    </Group>
  );
  const next =
    status === 'active' ? 'Send a test, or wait for the first event.' : 'Nothing is sent until the address is active.';
  return (
    <Section title="Recent deliveries" flush aside={more}>
      <Loaded query={recent} what="list of deliveries">
        {(deliveries) =>
          deliveries.length === 0 ? (
            <Empty title="No deliveries yet">{next}</Empty>
          ) : (
            <DeliveryTable deliveries={deliveries} />
          )
        }
      </Loaded>
    </Section>
  );
}

/** Shown above a subscription that is not active, or whose last validation found a problem. */
const alerts: Record<Subscription['status'], { color: string; title: string }> = {
  awaiting_validation: { color: 'orange', title: 'Nothing is sent until the address is validated' },
  paused: { color: 'orange', title: 'Paused: nothing is sent' },
  refused: { color: 'red', title: 'Refused: nothing is sent' },
  active: { color: 'yellow', title: 'The last validation found a problem' },
};
