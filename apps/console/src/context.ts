/** What the console's routes share: storage, settings and services. */
import type { JobQueues } from '@posthorn/queue';
import type { Clock, Logger, Tracing } from '@posthorn/runtime';
import type { Sender } from '@posthorn/sender';
import type { Fingerprints, SecretBox } from '@posthorn/signing';
import type { Directory, PublishedEntry, Store, UnreadableRecord } from '@posthorn/store';
import type { ConsoleSettings } from './config.ts';
import type { FeedHub } from './feed-hub.ts';
import type { Operators } from './operators.ts';
import type { TailItem } from './tail-item.ts';

export interface ConsoleContext {
  settings: ConsoleSettings;
  store: Store;
  /** Searches the subscriptions. */
  directory: Directory;
  jobQueues: JobQueues;
  operators: Operators;
  /** Sends the request of a validation. */
  validationSender: Sender;
  secretBox: SecretBox;
  /** The attempts, live. */
  tail: FeedHub<TailItem>;
  /** Makes the hashes of values that were erased. */
  fingerprints: Fingerprints;
  /** New events of the sandbox, live. */
  published: FeedHub<PublishedEntry>;
  /** Undefined if tracing is off. */
  tracing: Tracing | undefined;
  clock: Clock;
  logger: Logger;
  /** Says why records are left out of responses (unreadable-log.ts). */
  logUnreadable: (unreadable: readonly UnreadableRecord[]) => void;
}
