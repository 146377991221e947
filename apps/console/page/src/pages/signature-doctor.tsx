/** The signature doctor: says why a receiver refuses a signature, from the body and the header that it saw. */
import { Alert, Button, Group, List, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { SignatureCheck } from '@posthorn/operator-api';
import { useParams } from 'react-router';
import { ApiError, call } from '../api.ts';
import { useKeptFocus } from '../parts/kept-focus.ts';
import { Facts, Note, PageBody, Section } from '../parts/layout.tsx';
import { Loaded } from '../parts/states.tsx';
import { Instant } from '../parts/time.tsx';
import { useChange, useKept, useSubscription } from '../queries.ts';

export function SignatureDoctorPage() {
  const { id = '' } = useParams();
  const subscription = useSubscription(id);
  return (
    <PageBody
      title="Check a signature"
      back={{ to: `/subscriptions/${id}`, label: subscription.data?.url ?? 'Subscription' }}
    >
      <Loaded query={subscription} what="subscription">
        {() => <Doctor path={`/v1/subscriptions/${id}/check-signature`} />}
      </Loaded>
    </PageBody>
  );
}

type Fields = Record<'header' | 'body' | 'event_id' | 'received_at', string>;

function Doctor({ path }: { path: string }) {
  const check = useChange((fields: Fields) => call<SignatureCheck>('POST', path, given(fields)), { quiet: true });
  const form = useForm<Fields>({
    initialValues: { header: '', body: '', event_id: '', received_at: '' },
    validate: { header: (header) => (header.trim() ? null : 'Paste the header Service-Signature') },
  });
  useKept(form.isDirty());
  const submit = form.onSubmit(async (fields) => {
    try {
      await check.mutateAsync(fields);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      form.setErrors(Object.keys(error.fields).length > 0 ? error.fields : { header: error.message });
    }
  });
  return (
    <Stack>
      <Section>
        <form onSubmit={submit} noValidate>
          <Stack>
            <Note>Paste what the receiver saw. Nothing is sent or stored.</Note>
            <TextInput
              label="Header Service-Signature"
              placeholder="t=1700000000,v1=…"
              required
              classNames={{ input: 'mono' }}
              {...form.getInputProps('header')}
            />
            <Textarea
              label="Body"
              description="As the receiver saw it, before any parser. For line endings and invisible characters use: posthorn check-signature"
              autosize
              minRows={5}
              maxRows={16}
              spellCheck={false}
              classNames={{ input: 'mono' }}
              {...form.getInputProps('body')}
            />
            <Group grow align="start" preventGrowOverflow={false}>
              <TextInput
                label="Event id"
                description="Only if the body does not show it"
                {...form.getInputProps('event_id')}
              />
              <TextInput
                label="Received at"
                description="On the receiver's clock, to check it: an ISO 8601 instant"
                placeholder="2026-01-31T12:00:00Z"
                {...form.getInputProps('received_at')}
              />
            </Group>
            <Group>
              <Button ref={useKeptFocus(check.isPending)} type="submit" loading={check.isPending}>
                Check
              </Button>
            </Group>
          </Stack>
        </form>
      </Section>
      <div aria-live="polite">{check.data && <Diagnosis check={check.data} />}</div>
    </Stack>
  );
}

/** Returns the fields that have a value; the body may be empty. */
function given({ header, body, ...optional }: Fields): Partial<Fields> {
  const filled = Object.entries(optional).flatMap(([name, text]) => (text.trim() ? [[name, text.trim()]] : []));
  return { header, body, ...Object.fromEntries(filled) };
}

function Diagnosis({ check }: { check: SignatureCheck }) {
  const { correct, findings, difference } = check;
  return (
    <Section title="Result">
      <Stack>
        {correct ? (
          <Alert color="teal" title="The signature is correct">
            The body is as it was sent, and the current secret signed it. If the receiver refuses it, it has another
            secret, or it verifies another body than this one.
          </Alert>
        ) : (
          <Alert color="red" title="A receiver refuses this">
            <List size="sm" spacing={6}>
              {findings.map(({ kind, message }) => (
                <List.Item key={kind}>{message}</List.Item>
              ))}
            </List>
          </Alert>
        )}
        <Facts
          facts={{
            'Signed with': check.secret && `The ${check.secret} secret`,
            'Signed at': check.signed_at && <Instant at={check.signed_at} />,
            "Receiver's clock": check.clock_off_s !== null && offText(check.clock_off_s),
            'First difference': difference && `At character ${difference.at + 1}`,
          }}
        />
        {difference && (
          <Facts
            facts={{
              'Was sent': <Excerpt text={difference.sent} />,
              'Was received': <Excerpt text={difference.received} />,
            }}
          />
        )}
      </Stack>
    </Section>
  );
}

/** Returns for example `412 s after the signature`. */
function offText(seconds: number): string {
  return `${Math.abs(seconds)} s ${seconds < 0 ? 'before' : 'after'} the signature`;
}

/** Part of a body, in quotes and with its invisible characters spelled out. */
function Excerpt({ text }: { text: string }) {
  return (
    <Text span inherit className="mono">
      {JSON.stringify(text).replaceAll('\uFEFF', '\\ufeff')}
    </Text>
  );
}
