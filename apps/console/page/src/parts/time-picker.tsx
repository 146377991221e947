/** Picks a time, in the zone in which times are shown. Only the pages that have one load its code and its styles. */
import '@mantine/dates/styles.css';

import { DateTimePicker, type DateTimePickerProps } from '@mantine/dates';
import { type FilterProps, fieldOf, filterWidth } from './filters.tsx';
import { useZone } from './time.tsx';

interface TimePickerProps extends Pick<DateTimePickerProps, 'label' | 'aria-label' | 'placeholder' | 'w'> {
  /** An ISO 8601 instant. */
  value: string | null;
  onChange: (value: string | null) => void;
}

export function TimePicker({ value, onChange, ...props }: TimePickerProps) {
  const { inZone, zoneAt } = useZone();
  const instant = value === null ? null : inZone(value);
  const zone = value !== null && instant?.isValid() ? ` [${zoneAt(value)}]` : '';
  return (
    <DateTimePicker
      {...props}
      valueFormat={`D MMM YYYY, HH:mm${zone}`}
      value={instant?.isValid() ? instant.format('YYYY-MM-DD HH:mm:ss') : null}
      onChange={(text) => onChange(text && inZone(text).toISOString())}
    />
  );
}

export function TimeFilter<N extends string>(filter: FilterProps<N>) {
  return <TimePicker placeholder={filter.label} w={filterWidth(220)} {...fieldOf(filter)} />;
}
