/** Chooses a subscription among any number of them. */
import { Select, type SelectProps } from '@mantine/core';
import { useState } from 'react';
import { useNames } from '../queries.ts';
import { SUBSCRIPTION_ID, useAddressOptions } from './address-options.tsx';

interface AddressPickerProps
  extends Pick<SelectProps, 'label' | 'description' | 'aria-label' | 'placeholder' | 'w' | 'maw' | 'mb'> {
  /** The id of the chosen subscription. */
  value: string | null;
  onChange: (id: string | null) => void;
}

export function AddressPicker({ value, onChange, ...select }: AddressPickerProps) {
  const chosenLabel = useNames(value === null ? [] : [value]).get(value ?? '')?.url ?? value ?? '';
  const [text, setText] = useState('');
  const [isOpen, setOpen] = useState(false);
  // While nothing is typed, the field contains the chosen address.
  const isTyped = text.trim() !== '' && text !== chosenLabel;
  const { options, labelOf } = useAddressOptions(isTyped ? text.trim() : '', value === null ? [] : [value]);
  const type = (typed: string) => {
    // The label of the chosen address, which came while the user was typing.
    if (isOpen && value !== null && typed === labelOf(value)) return;
    setText(typed);
    // A pasted id needs no search. A deleted subscription would not be found, but its deliveries still are.
    const id = typed.trim();
    if (SUBSCRIPTION_ID.test(id) && id !== value) onChange(id);
  };
  return (
    <Select
      {...select}
      {...options}
      value={value}
      onChange={onChange}
      clearable
      searchable
      searchValue={text}
      onSearchChange={type}
      onDropdownOpen={() => {
        setOpen(true);
        setText('');
      }}
      onDropdownClose={() => {
        setOpen(false);
        setText(chosenLabel);
      }}
    />
  );
}
