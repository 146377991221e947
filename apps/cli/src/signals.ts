/** The signals that end a command early. */
export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
