/** Mantine's picker of a date and time, with its styles. Only the pages that have one load its code. */
import '@mantine/dates/styles.css';

export { DateTimePicker } from '@mantine/dates';
