/** A field whose text filters a list while the user types. */
import { CloseButton, TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { SearchIcon } from '@primer/octicons-react';
import { useState } from 'react';

/** Pause in typing after which the list is filtered. */
const TYPING_MS = 250;

interface SearchFieldProps extends Pick<TextInputProps, 'aria-label' | 'placeholder' | 'w'> {
  value: string | null;
  onChange: (value: string | null) => void;
}

export function SearchField({ value, onChange, ...input }: SearchFieldProps) {
  const [text, setText] = useState(value ?? '');
  /** The value that this field set last. Any other comes from a link, the back button or "Clear". */
  const [own, setOwn] = useState(value);
  const [seen, setSeen] = useState(value);
  if (value !== seen) {
    setSeen(value);
    if (value !== own) {
      setOwn(value);
      setText(value ?? '');
    }
  }
  // Applies what the field has by then: a link or the back button may have changed it.
  const applySoon = useDebouncedCallback(() => {
    const wanted = text.trim() || null;
    setOwn(wanted);
    onChange(wanted);
  }, TYPING_MS);
  const change = (next: string) => {
    setText(next);
    applySoon();
  };
  return (
    <TextInput
      {...input}
      value={text}
      maxLength={200}
      onChange={(event) => change(event.currentTarget.value)}
      leftSection={<SearchIcon size={16} />}
      rightSection={text !== '' && <CloseButton size="sm" aria-label="Clear the search" onClick={() => change('')} />}
    />
  );
}
