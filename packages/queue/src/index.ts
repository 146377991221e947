/** The public interface of the queue. */

export {
  type Consumer,
  type ConsumerOptions,
  type ConsumerTimings,
  createConsumer,
  type Ended,
  type LockedJob,
} from './consumer.ts';
export { isJobGone, type JobOutcome } from './endings.ts';
export { FIRST_JOB_LUA } from './first-job.ts';
export type { Claim } from './leases.ts';
export { createProducer, type Producer } from './producer.ts';
