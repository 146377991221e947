/** The newest validation of an address, and what came back. */
import { Stack, Text } from '@mantine/core';
import type { Validation } from '@posthorn/operator-api';
import { isKept } from './attempt-facts.ts';
import { CameBackDetails } from './came-back.tsx';
import { Note } from './layout.tsx';
import { failureTexts } from './status.tsx';
import { Instant } from './time.tsx';

const outcomes: Record<Validation['outcome'], string> = {
  acceptable: 'The address is acceptable',
  refused: 'The address is refused',
  unreachable: 'The address could not be reached',
};

export function ValidationResult({ validation }: { validation: Validation }) {
  const { at, outcome, status_code: status, error } = validation;
  const reasons = [status !== null && `status ${status}`, error !== null && failureTexts[error].toLowerCase()];
  return (
    <Stack gap="xs">
      <Text size="sm">
        {outcomes[outcome]}
        {reasons.some(Boolean) && `: ${reasons.filter(Boolean).join(', ')}`}.
        {outcome === 'acceptable' && error !== null && ' A delivery with this response would fail.'}
      </Text>
      <Note>
        <Instant at={at} />
      </Note>
      {isKept(validation) && <CameBackDetails cameBack={validation} label="response to the validation" />}
    </Stack>
  );
}
