/** Erasures: counts what a value would erase, which is then confirmed on a page of its own, and lists earlier ones. */
import { Group, Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import type { Erasure } from '@posthorn/operator-api';
import { type FormEvent, useState } from 'react';
import { useSearchParams } from 'react-router';
import { call } from '../api.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { erasureFields, erasureOptions } from '../parts/erasure.ts';
import { Note, PageBody, RowLink, Section } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Empty } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { eventEnvironments } from '../parts/subscription-fields.tsx';
import { Instant } from '../parts/time.tsx';
import { useChange, useErasures, useKept } from '../queries.ts';

export function ErasuresPage() {
  const list = useErasures();
  const empty = <Empty title="No erasures yet">When a person asks for it, erase what Posthorn has of them.</Empty>;
  return (
    <PageBody title="Erasures">
      <Section title="Erase payloads">
        <NewErasure />
      </Section>
      <PagedList list={list} what="list of erasures" title="Earlier erasures" empty={empty}>
        {(erasures) => <DataTable aria-label="Erasures" columns={columns} rows={erasures} highlightOnHover />}
      </PagedList>
    </PageBody>
  );
}

const columns: Column<Erasure>[] = [
  {
    header: 'Erased by',
    cell: ({ id, field }) => <RowLink to={`/erasures/${id}`}>{erasureFields[field]}</RowLink>,
  },
  { header: 'Status', width: 170, cell: ({ status }) => <StatusBadge status={status} /> },
  {
    header: 'Events',
    width: 130,
    visibleFrom: 'sm',
    cell: ({ erased, found }) => `${countText(erased.events)} of ${countText(found.events)}`,
  },
  { header: 'Operator', width: 150, visibleFrom: 'md', cell: ({ operator }) => operator },
  { header: 'Requested', width: 170, visibleFrom: 'xs', cell: ({ created_at }) => <Instant at={created_at} /> },
];

function NewErasure() {
  const [search] = useSearchParams();
  const [field, setField] = useState(
    erasureOptions.find(({ value }) => value === search.get('field'))?.value ?? 'session_id',
  );
  const linked = search.get('value') ?? '';
  const [value, setValue] = useState(linked);
  useKept(value !== linked);
  const linkedTo = eventEnvironments.find((one) => one.value === search.get('environment'))?.value ?? null;
  const [environment, setEnvironment] = useState<string | null>(linkedTo);
  const start = useChange(
    () => call<Erasure>('POST', '/v1/erasures', { [field]: value, environment: environment ?? undefined }),
    { opens: ({ id }) => `/erasures/${id}` },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (value !== '') start.mutate();
  };
  return (
    <Stack component="form" onSubmit={submit}>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <Select label="What" data={erasureOptions} value={field} onChange={(chosen) => chosen && setField(chosen)} />
        <TextInput
          label="Value"
          placeholder="The whole value"
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
          autoComplete="off"
          description={value !== value.trim() && 'It begins or ends with white space, which counts.'}
        />
        <Select
          label="Environment"
          placeholder="Both environments"
          data={eventEnvironments}
          value={environment}
          onChange={setEnvironment}
          clearable
        />
      </SimpleGrid>
      <Group>
        <ActionButton label="Count" change={start} disabled={value === ''} />
        <Note>Counts first. Nothing is erased before you confirm it.</Note>
      </Group>
    </Stack>
  );
}
