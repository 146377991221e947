/** Tools of the tests: real receivers, a key prefix in a real Redis, a clock. */
export { startBlackHole } from './black-hole.ts';
export { type FakeClock, fakeClock } from './clock.ts';
export { type CollectedSpan, startCollector } from './collector.ts';
export { eventually, HUNG_MS } from './eventually.ts';
export { jobIdOf } from './job-id.ts';
export { type Misbehaviour, misbehaviours, startMisbehavingReceiver } from './misbehaving-receiver.ts';
export { type NameAnswer, type NameServer, startNameServer } from './name-server.ts';
export { decodeTraces } from './otlp.ts';
export { problemsOf } from './problems.ts';
export {
  deliveriesWith,
  isDelivery,
  type ReceivedRequest,
  type Receiver,
  startReceiver,
} from './receiver.ts';
export { testPrefix, testRedisUrl } from './redis.ts';
export { rsaTestCertificate, testCertificate } from './test-certificate.ts';
