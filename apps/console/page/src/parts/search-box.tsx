/** Opens the page of the id that the user enters, or searches for anything else. */
import { TextInput } from '@mantine/core';
import { SearchIcon } from '@primer/octicons-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { withQuery } from '../api.ts';

/** Returns the path for an id. An id without a known prefix is that of an event, because publishers choose those. */
export function pageOfId(id: string): string {
  const section =
    { sub_: 'subscriptions', dlv_: 'deliveries', rpl_: 'replays', rpb_: 'replays', ers_: 'erasures' }[id.slice(0, 4)] ??
    'events';
  return `/${section}/${encodeURIComponent(id)}`;
}

/**
 * An id that Posthorn made. Any other text may be the id of an event, an address, a session, a reference or a user, or
 * the beginning of an id.
 */
const OWN_ID = /^(?:(?:sub|ers)_[\w-]{22}|(?:dlv|rpl|rpb)_[\w-]{26}|evt_[\w-]+)$/;

/** Removes the quotes around a value that was copied from a chat, JSON or a log, and the comma after it. */
function unquoted(text: string): string {
  return /^["'`“‘]+([^"'`“”‘’]+)["'`”’]+[,;]?$/.exec(text)?.[1]?.trim() || text;
}

export function SearchBox() {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const entered = unquoted(text.trim());
          if (entered === '') return;
          setText('');
          navigate(OWN_ID.test(entered) ? pageOfId(entered) : withQuery('/search', { q: entered }));
        }}
      >
        <TextInput
          aria-label="Search"
          placeholder="Any id, address, session, user …"
          leftSection={<SearchIcon size={16} />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </form>
    </search>
  );
}
