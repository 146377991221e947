/** Says that an address is not active, for operators who want to send to it. */

/** Returns the sentence and what to do, without a full stop. */
export function notActive(address: 'The address' | 'Its address'): string {
  return `${address} is not active: resume or validate it first, or wait if it is resuming`;
}
