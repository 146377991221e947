/** What operators are told to do who want to send to an address that is not active. */
export const ADVICE = 'resume or validate it first, or wait if it is resuming';
