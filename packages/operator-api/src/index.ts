/** The operator API (interface 4): what it accepts and returns, for the console, its page and the command line. */
export * from './requests.ts';
export * from './responses.ts';
