/** Opens the page of the id that the user enters. */
import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';

/** Returns the path for an id. An id without a known prefix is that of an event, because publishers choose those. */
export function pageOfId(id: string): string {
  const section = { sub_: 'subscriptions', dlv_: 'deliveries', rpl_: 'replays' }[id.slice(0, 4)] ?? 'events';
  return `/${section}/${encodeURIComponent(id)}`;
}

export function SearchBox() {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const id = text.trim();
          if (id === '') return;
          setText('');
          navigate(pageOfId(id));
        }}
      >
        <TextInput
          aria-label="Go to an id"
          placeholder="Any id: evt_…, dlv_…, sub_…"
          leftSection={<IconSearch size={16} />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </form>
    </search>
  );
}
