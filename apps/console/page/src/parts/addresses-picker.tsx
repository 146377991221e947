/** Chooses several subscriptions among any number of them. */
import { MultiSelect, type MultiSelectProps } from '@mantine/core';
import { useState } from 'react';
import { SUBSCRIPTION_ID, useAddressOptions } from './address-options.tsx';

interface AddressesPickerProps extends Pick<MultiSelectProps, 'label' | 'placeholder'> {
  /** The ids of the chosen subscriptions. */
  value: string[];
  onChange: (ids: string[]) => void;
  maxValues: number;
}

export function AddressesPicker({ value, onChange, maxValues, ...select }: AddressesPickerProps) {
  const [text, setText] = useState('');
  const type = (typed: string) => {
    const id = typed.trim();
    const isNewId = SUBSCRIPTION_ID.test(id) && !value.includes(id) && value.length < maxValues;
    if (isNewId) onChange([...value, id]);
    setText(isNewId ? '' : typed);
  };
  return (
    <MultiSelect
      {...select}
      {...useAddressOptions(text.trim(), value).options}
      value={value}
      onChange={onChange}
      maxValues={maxValues}
      searchable
      hidePickedOptions
      // A line of its own only when there is hardly any room left.
      styles={{ inputField: { minWidth: 40 } }}
      clearable
      searchValue={text}
      onSearchChange={type}
    />
  );
}
