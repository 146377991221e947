/** What the console's routes work with. */
import type { Producer } from '@posthorn/queue';
import type { Clock, Logger } from '@posthorn/runtime';
import type { SenderOptions } from '@posthorn/sender';
import type { SecretBox } from '@posthorn/signing';
import type { Store } from '@posthorn/store';
import type { Operators } from './operators.ts';

export interface ConsoleContext {
  store: Store;
  producer: Producer;
  operators: Operators;
  /** How the probe of a validation is sent; what it exempts, registration exempts too. */
  probe: SenderOptions;
  requireHttps: 'production' | 'always' | 'never';
  secretBox: SecretBox;
  clock: Clock;
  logger: Logger;
}
