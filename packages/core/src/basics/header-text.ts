/** Text that callers can send in an HTTP header. */

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/**
 * Whether every client sends it alike: clients refuse control characters in a header, and differ in how they encode
 * what is not ASCII.
 */
export function isHeaderText(text: string): boolean {
  return PRINTABLE_ASCII.test(text);
}
