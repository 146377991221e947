/** What a bulk replay would do: how many deliveries to whom, for how long, and what speaks against it. */
import { Box, Group, Paper, Stack, Text } from '@mantine/core';
import type { Rehearsal } from '@posthorn/operator-api';
import { AlertIcon } from '@primer/octicons-react';
import { AddressLink } from '../parts/address.tsx';
import { Note } from '../parts/layout.tsx';
import { amountText, countText, secondsText } from '../parts/numbers.ts';

type Address = Rehearsal['addresses'][number];

export function RehearsalResult({ rehearsal }: { rehearsal: Rehearsal }) {
  return (
    <Paper withBorder component="section" aria-label="Rehearsal">
      <Box px="md" py="sm" role="status">
        <Text fw={600} size="sm">
          {summaryOf(rehearsal)}
        </Text>
        <Note size="xs">Nothing has been changed.</Note>
      </Box>
      <Stack component="ul" gap={0} m={0} p={0} style={{ listStyle: 'none' }}>
        {rehearsal.addresses.map((address) => (
          <AddressRow key={address.subscription_id} address={address} />
        ))}
      </Stack>
    </Paper>
  );
}

function AddressRow({ address }: { address: Address }) {
  const { subscription_id: id, url, description, warnings } = address;
  return (
    <Box component="li" px="md" py="xs" style={{ borderTop: '1px solid var(--mantine-color-default-border)' }}>
      <Group justify="space-between" gap="xs" align="flex-start">
        <Box miw={0} style={{ flex: '1 1 240px' }}>
          <AddressLink id={id} url={url} description={description} />
        </Box>
        <Text size="sm" className="numbers">
          {detailsOf(address)}
        </Text>
      </Group>
      {warnings.map(({ kind, message }) => (
        <Group key={kind} gap={6} wrap="nowrap" align="flex-start" mt={2}>
          <AlertIcon size={16} fill="var(--mantine-color-orange-text)" />
          <Text size="sm">{message}</Text>
        </Group>
      ))}
    </Box>
  );
}

const moreThan = ({ is_complete: isComplete }: Pick<Address, 'is_complete'>) => (isComplete ? '' : 'more than ');

function summaryOf(rehearsal: Rehearsal): string {
  const { addresses, canaries, count, expected_s: seconds } = rehearsal;
  const what = moreThan(rehearsal) + amountText(count, 'delivery', 'deliveries');
  const to = addresses.length === 1 ? 'one address' : `${countText(addresses.length)} addresses`;
  const first = canaries > 0 && canaries < count ? `, ${countText(canaries)} of them first` : '';
  const duration = seconds === null ? 'for how long is unknown' : `in about ${secondsText(seconds)}`;
  return `It would send ${what} to ${to}${first}, ${duration}.`;
}

function detailsOf(address: Address): string {
  const { canaries, count, skipped, expected_s: seconds, rate_per_s: rate } = address;
  const parts = [
    `${moreThan(address)}${countText(count)} to send`,
    canaries > 0 && `${canaries} first`,
    skipped > 0 && `${countText(skipped)} skipped`,
    seconds === null
      ? 'duration unknown: no attempt in 24 hours'
      : seconds > 0 &&
        `about ${secondsText(seconds)} at ${rate?.toLocaleString('en', { maximumSignificantDigits: 2 })}/s`,
  ];
  return parts.filter(Boolean).join(' · ');
}
