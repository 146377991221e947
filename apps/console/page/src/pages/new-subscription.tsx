/** Creates a subscription, then shows its secret once. */
import { Button, Group, Stack, Text } from '@mantine/core';
import type { Subscription, SubscriptionWithSecret } from '@posthorn/operator-api';
import { Link, useNavigate } from 'react-router';
import { call } from '../api.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { shortAddress } from '../parts/address.tsx';
import { PageBody, Section } from '../parts/layout.tsx';
import { SecretOnce, useNewSecret } from '../parts/secret.tsx';
import { type SubscriptionFields, SubscriptionForm } from '../parts/subscription-fields.tsx';
import { usePost } from '../queries.ts';

const empty: SubscriptionFields = { url: '', event_types: 'all', environment: 'both', description: '' };

export function NewSubscriptionPage() {
  const navigate = useNavigate();
  const create = useNewSecret(
    (fields: SubscriptionFields) => call<SubscriptionWithSecret>('POST', '/v1/subscriptions', fields),
    { quiet: true },
  );
  const created = create.data;
  const validate = usePost<Subscription>(`/v1/subscriptions/${created?.id}/validate`, {
    opens: ({ id }) => `/subscriptions/${id}`,
  });
  if (created) {
    return (
      <PageBody title="Subscription created">
        <Section>
          <Stack>
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              Events go to <b>{shortAddress(created.url)}</b> once its address is validated.
            </Text>
            <SecretOnce secret={created.secret} />
            <Group>
              <ActionButton label="I have copied it, validate the address" change={validate} />
              <Button component={Link} to={`/subscriptions/${created.id}`} variant="default">
                Later
              </Button>
            </Group>
          </Stack>
        </Section>
      </PageBody>
    );
  }
  return (
    <PageBody title="New subscription" back={{ to: '/subscriptions', label: 'Subscriptions' }}>
      <Section>
        <SubscriptionForm
          initial={empty}
          submitLabel="Create"
          onSubmit={create.mutateAsync}
          onCancel={() => navigate('/subscriptions')}
        />
      </Section>
    </PageBody>
  );
}
