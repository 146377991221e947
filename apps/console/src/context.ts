/** What the console's routes work with. */
import type { Producer } from '@posthorn/queue';
import type { Clock, Logger } from '@posthorn/runtime';
import type { AllowedNetworks, Sender } from '@posthorn/sender';
import type { SecretBox } from '@posthorn/signing';
import type { Store } from '@posthorn/store';
import type { Operators } from './operators.ts';

export interface ConsoleContext {
  store: Store;
  producer: Producer;
  operators: Operators;
  /** Sends the request of a validation. */
  probe: Sender;
  /** Networks exempt from the address guard, at registration and at validation. */
  allowedNetworks: AllowedNetworks;
  attemptTimeoutMs: number;
  requireHttps: 'production' | 'always' | 'never';
  secretBox: SecretBox;
  clock: Clock;
  logger: Logger;
}
