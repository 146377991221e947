/** The public interface of the queue. */

export {
  type Consumer,
  type ConsumerOptions,
  type ConsumerTimings,
  createConsumer,
  isJobGone,
  type JobOutcome,
} from './consumer.ts';
export { FIRST_JOB_LUA } from './first-job.ts';
export { createProducer, type Producer } from './producer.ts';
