/** Filters a list by a time, in the zone in which times are shown. Only the pages that have one load its code. */
import dayjs from 'dayjs';
import { DateTimePicker } from './date-time-picker.ts';
import { filterWidth } from './filters.tsx';
import { useUtc } from './utc.tsx';

interface TimeFilterProps {
  label: string;
  /** An ISO 8601 instant. */
  value: string | null;
  onChange: (value: string | null) => void;
}

export function TimeFilter({ label, value, onChange }: TimeFilterProps) {
  const [isUtc] = useUtc();
  const instant = value === null ? null : isUtc ? dayjs.utc(value) : dayjs(value);
  return (
    <DateTimePicker
      aria-label={label}
      placeholder={label}
      value={instant?.isValid() ? instant.format('YYYY-MM-DD HH:mm:ss') : null}
      onChange={(text) => onChange(text && (isUtc ? dayjs.utc(text) : dayjs(text)).toISOString())}
      w={filterWidth(200)}
    />
  );
}
