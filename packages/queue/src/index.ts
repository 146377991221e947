/** The public interface of the queue. */
export { Consumer } from './consumer.ts';
export type { ConsumerOptions, ConsumerTimings, EndJob } from './consumer-options.ts';
export { isJobGone, type JobOutcome } from './endings.ts';
export { createJobQueues, type JobQueues } from './job-queues.ts';
export type { Claim } from './leases.ts';
