/** Displays and edits the fields of a subscription that an operator sets. */
import {
  Alert,
  Button,
  Checkbox,
  Group,
  Input,
  Radio,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useForm } from '@mantine/form';
import type { Subscription } from '@posthorn/operator-api';
import { useState } from 'react';
import { ApiError } from '../api.ts';
import { useKept } from '../queries.ts';
import { useKeptFocus } from './kept-focus.ts';

type SessionEventType = Exclude<Exclude<Subscription['event_types'], 'all'>[number], 'webhook.test'>;

/** In the order of the specification, section 6. The compiler checks that none is missing. */
const meanings: Record<SessionEventType, string> = {
  'session.created': 'The session has just been created',
  'session.started': 'The customer opened the verification flow',
  'session.submitted': 'The customer submitted their documents',
  'session.in_review': 'A person is examining the case',
  'session.approved': 'Identity verified',
  'session.declined': 'Verification refused',
  'session.resubmission_requested': 'Documents must be submitted again',
  'session.expired': 'The link has expired',
  'session.cancelled': 'The session was cancelled',
};
const sessionEventTypes = Object.keys(meanings) as SessionEventType[];
/** Those that a delivery may have. */
export const eventTypes = [...sessionEventTypes, 'webhook.test'];

export const environmentLabels: Record<Subscription['environment'], string> = {
  sandbox: 'Sandbox',
  production: 'Production',
  both: 'Both',
};
export const environments = Object.entries(environmentLabels).map(([value, label]) => ({ value, label }));
/** Those that an event may have. */
export const eventEnvironments = environments.filter(({ value }) => value !== 'both');

/** Returns `All types`, the only type, or the number of types. */
export function typesText(types: Subscription['event_types']): string {
  if (types === 'all') return 'All types';
  return types.length === 1 ? types.join() : `${types.length} types`;
}

export type SubscriptionFields = Pick<Subscription, 'url' | 'event_types' | 'environment' | 'description'>;

interface SubscriptionFormProps {
  initial: SubscriptionFields;
  submitLabel: string;
  onSubmit: (fields: SubscriptionFields) => Promise<unknown>;
  onCancel: () => void;
}

/**
 * The form to create or change a subscription. Shows the API's messages at their fields, and others above the buttons.
 */
export function SubscriptionForm({ initial, submitLabel, onSubmit, onCancel }: SubscriptionFormProps) {
  const form = useForm({
    initialValues: {
      url: initial.url,
      environment: initial.environment,
      description: initial.description,
      all: initial.event_types === 'all',
      event_types: initial.event_types === 'all' ? [] : initial.event_types,
    },
    validate: {
      url: (url) => (URL.canParse(url) ? null : 'Enter a complete URL, such as https://example.com/webhooks'),
      event_types: (types, { all }) => (all || types.length > 0 ? null : 'Choose at least one'),
    },
  });
  const [failure, setFailure] = useState<string | null>(null);
  useKept();
  const submit = form.onSubmit(async ({ all, url, event_types, ...others }) => {
    setFailure(null);
    try {
      await onSubmit({ ...others, url: url.trim(), event_types: all ? 'all' : event_types });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      form.setErrors(error.fields);
      if (Object.keys(error.fields).length === 0) setFailure(error.message);
    }
  });
  const all = form.getValues().all;
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <TextInput
          label="Address"
          description="Events are sent to this URL. Private and local addresses and redirects are refused."
          placeholder="https://example.com/webhooks"
          inputMode="url"
          required
          {...form.getInputProps('url')}
        />
        <Input.Wrapper label="Environment" labelElement="div" labelProps={{ display: 'block', mb: 4 }}>
          <SegmentedControl data={environments} aria-label="Environment" {...form.getInputProps('environment')} />
        </Input.Wrapper>
        <Radio.Group
          label="Event types"
          value={all ? 'all' : 'some'}
          onChange={(value) => form.setFieldValue('all', value === 'all')}
        >
          <Group mt={6}>
            <Radio value="all" label="All, including new ones" />
            <Radio value="some" label="A selection" />
          </Group>
        </Radio.Group>
        {!all && (
          <Checkbox.Group aria-label="Selected event types" {...form.getInputProps('event_types')}>
            <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="xs">
              {sessionEventTypes.map((type) => (
                <Checkbox key={type} value={type} label={type} description={meanings[type]} />
              ))}
            </SimpleGrid>
          </Checkbox.Group>
        )}
        <Textarea
          label="Description"
          placeholder="Purpose and contact"
          autosize
          minRows={2}
          maxLength={1_000}
          {...form.getInputProps('description')}
        />
        {failure !== null && (
          <Alert color="red" role="alert">
            {failure}
          </Alert>
        )}
        <Group>
          <Button ref={useKeptFocus(form.submitting)} type="submit" loading={form.submitting}>
            {submitLabel}
          </Button>
          <Button variant="default" onClick={onCancel} disabled={form.submitting}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
