/** Two attempts of a delivery side by side: what changed in status, IP, times, certificate, headers and body. */
import { Badge, Box, Group, Select, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { type Attempt, compareAttempts } from './attempt-facts.ts';
import { ResponseBody } from './came-back.tsx';
import { Note } from './layout.tsx';

/** Begins with the first and the last attempt: those of which most is kept. There must be two. */
export function AttemptComparison({ attempts }: { attempts: Attempt[] }) {
  const [firstNumber, setFirst] = useState('1');
  // Follows the newest attempt until another is chosen.
  const [secondNumber, setSecond] = useState<string | null>(null);
  const first = attempts.find(({ number }) => String(number) === firstNumber);
  const second = attempts.find(({ number }) => String(number) === secondNumber) ?? attempts.at(-1);
  if (!first || !second) return null;
  const choice = (label: string, value: Attempt, choose: (number: string) => void) => (
    <Select
      aria-label={label}
      size="xs"
      w={130}
      data={attempts.map(({ number }) => ({ value: String(number), label: `Attempt ${number}` }))}
      value={String(value.number)}
      onChange={(number) => number && choose(number)}
      allowDeselect={false}
    />
  );
  return (
    <Stack gap="sm">
      <Group gap="xs">
        {choice('First attempt', first, setFirst)}
        <Note>with</Note>
        {choice('Second attempt', second, setSecond)}
      </Group>
      <Compared first={first} second={second} />
    </Stack>
  );
}

function Compared({ first, second }: { first: Attempt; second: Attempt }) {
  const facts = compareAttempts(first, second);
  const [a, b] = [first.response?.body, second.response?.body];
  const areBothKnown = a !== undefined && b !== undefined;
  const changed = facts.filter(({ isChanged }) => isChanged).map(({ name }) => name);
  if (areBothKnown && a !== b) changed.push('body');
  return (
    <>
      <Text size="sm">
        {changed.length === 0 ? 'Nothing that is known changed.' : `Changed: ${changed.join(', ')}.`}
      </Text>
      <Table layout="fixed" aria-label="Two attempts" className="numbers" verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={{ base: 108, xs: '30%' }}>Fact</Table.Th>
            <Table.Th>Attempt {first.number}</Table.Th>
            <Table.Th>Attempt {second.number}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {facts.map(({ name, first: before, second: after, isChanged }) => (
            <Table.Tr key={name} style={{ overflowWrap: 'anywhere' }}>
              <Table.Th fw={isChanged ? 650 : 400}>
                {name} {isChanged && <Changed />}
              </Table.Th>
              <Table.Td>{before}</Table.Td>
              <Table.Td>{after}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {(a !== undefined || b !== undefined) && (
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          {[first, second].map((attempt, i) => (
            <Box key={i === 0 ? 'first' : 'second'} miw={0}>
              <Group gap="xs" mb={4}>
                <Text size="sm">Body of attempt {attempt.number}</Text>
                {areBothKnown && a !== b && i === 1 && <Changed />}
              </Group>
              <ResponseBody cameBack={attempt} label={`${i === 0 ? 'first' : 'second'} body`} />
            </Box>
          ))}
        </SimpleGrid>
      )}
    </>
  );
}

function Changed() {
  return (
    <Badge size="xs" color="yellow" variant="light" radius="sm" tt="none">
      changed
    </Badge>
  );
}
