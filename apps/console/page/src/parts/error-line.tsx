/** The most frequent error of an address, in one line. What the receiver sent is shown as text only. */
import { Text } from '@mantine/core';
import type { Health } from '@posthorn/operator-api';
import { countText } from './numbers.ts';
import { Instant } from './time.tsx';

/** Shows for example `500, “database is read-only”, 530 times since 21:04`. */
export function ErrorLine({ error }: { error: Health['error'] }) {
  if (error === null) return null;
  const { label, message, count, since } = error;
  return (
    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
      <b>{label}</b>
      {message !== null && (
        <>
          , “<bdi>{message}</bdi>”
        </>
      )}
      , {count === 1 ? 'once' : `${countText(count)} times`} since <Instant at={since} />
    </Text>
  );
}
