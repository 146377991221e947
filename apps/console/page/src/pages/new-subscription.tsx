/** Creates a subscription, then shows its secret once. */

import { Button, Group, Stack, Text } from '@mantine/core';
import type { Subscription, SubscriptionWithSecret } from '@posthorn/operator-api';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { call } from '../api.ts';
import { PageBody, Section } from '../parts/layout.tsx';
import { SecretOnce } from '../parts/secret.tsx';
import { type SubscriptionFields, SubscriptionForm } from '../parts/subscription-fields.tsx';
import { useChange } from '../queries.ts';

const empty: SubscriptionFields = { url: '', event_types: 'all', environment: 'both', description: '' };

export function NewSubscriptionPage() {
  const [created, setCreated] = useState<SubscriptionWithSecret>();
  const navigate = useNavigate();
  const create = useChange(
    (fields: SubscriptionFields) => call<SubscriptionWithSecret>('POST', '/v1/subscriptions', fields),
    { onDone: setCreated, quiet: true },
  );
  const validate = useChange((id: string) => call<Subscription>('POST', `/v1/subscriptions/${id}/validate`), {
    onDone: ({ id }) => navigate(`/subscriptions/${id}`),
  });
  if (created) {
    return (
      <PageBody title="Subscription created">
        <Section>
          <Stack>
            <Text size="sm">
              Events go to <b>{created.url}</b> once its address is validated.
            </Text>
            <SecretOnce secret={created.secret} />
            <Group>
              <Button loading={validate.isPending} onClick={() => validate.mutate(created.id)}>
                I have copied it, validate the address
              </Button>
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
          onSubmit={(fields) => create.mutateAsync(fields)}
          onCancel={() => navigate('/subscriptions')}
        />
      </Section>
    </PageBody>
  );
}
