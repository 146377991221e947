/** Chooses the addresses of a bulk replay among any number of them. */
import { MultiSelect } from '@mantine/core';
import { useState } from 'react';
import { MAX_REPLAYED_ADDRESSES } from '../api.ts';
import { SUBSCRIPTION_ID, useAddressOptions } from './address-options.tsx';

interface AddressesPickerProps {
  /** The ids of the chosen subscriptions. */
  value: string[];
  onChange: (ids: string[]) => void;
}

export function AddressesPicker({ value, onChange }: AddressesPickerProps) {
  const [text, setText] = useState('');
  const type = (typed: string) => {
    const id = typed.trim();
    const isNewId = SUBSCRIPTION_ID.test(id) && !value.includes(id) && value.length < MAX_REPLAYED_ADDRESSES;
    if (isNewId) onChange([...value, id]);
    setText(isNewId ? '' : typed);
  };
  return (
    <MultiSelect
      label="Addresses"
      placeholder={value.length === 0 ? 'Choose one or more' : ''}
      {...useAddressOptions(text.trim(), value).options}
      value={value}
      onChange={onChange}
      maxValues={MAX_REPLAYED_ADDRESSES}
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
