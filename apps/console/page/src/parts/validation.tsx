/** The newest validation of an address, and what came back. */
import { Stack, Text } from '@mantine/core';
import type { Subscription, Validation } from '@posthorn/operator-api';
import { isKept } from './attempt-facts.ts';
import { CameBackDetails } from './came-back.tsx';
import { Note } from './layout.tsx';
import { failureTexts, looks } from './status.tsx';
import { Instant } from './time.tsx';

const outcomes: Record<Validation['outcome'], string> = {
  acceptable: 'The address is acceptable',
  refused: 'The address is refused',
  unreachable: 'The address could not be reached',
};

/** Returns what a validation found, in one or two sentences. */
function foundText({ outcome, status_code: status, error }: Validation): string {
  const reasons = [status !== null && `status ${status}`, error !== null && failureTexts[error].toLowerCase()];
  const found = [outcomes[outcome], reasons.filter(Boolean).join(', ')].filter(Boolean).join(': ');
  return `${found}.${outcome === 'acceptable' && error !== null ? ' A delivery with this response would fail.' : ''}`;
}

/** The notification about the validation that a subscription has just had. */
export function validationNotice({ status, last_validation: validation }: Subscription) {
  if (validation === null) return 'The validation has ended.';
  const { outcome } = validation;
  const isWell = outcome === 'acceptable' && status === 'active' && validation.error === null;
  const color = outcome === 'refused' ? 'red' : isWell ? 'teal' : 'orange';
  const stays =
    outcome === 'unreachable' || status === 'paused' ? ` It is ${looks[status].label.toLowerCase()} as before.` : '';
  return { message: `${foundText(validation)}${stays}`, color };
}

export function ValidationResult({ validation }: { validation: Validation }) {
  return (
    <Stack gap="xs">
      <Text size="sm">{foundText(validation)}</Text>
      <Note>
        <Instant at={validation.at} />
      </Note>
      {isKept(validation) && <CameBackDetails cameBack={validation} label="response to the validation" />}
    </Stack>
  );
}
