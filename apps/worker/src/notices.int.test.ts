/** The notifier posts the notices of the partitions whose lease it holds, on a real Redis. */
import { expect, it } from '@jest/globals';
import { createLogger, systemClock } from '@posthorn/runtime';
import type { Sender } from '@posthorn/sender';
import { addOutageNotice, waitingNotices } from '@posthorn/store';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createNoticeService } from './notices.ts';

it('leaves the other notices to the process that has got the lease while a batch was posted', async () => {
  const notice = { type: 'outage.ended', atMs: 0, reason: 'dns', worker: 'w', sinceMs: 0 } as const;
  for (let i = 0; i < 25; i++) await addOutageNotice(store, notice);
  const posting = Promise.withResolvers<void>();
  const leaseIsGone = Promise.withResolvers<void>();
  const send: Sender['send'] = async () => {
    posting.resolve();
    await leaseIsGone.promise;
    return { kind: 'responded', statusCode: 200, ip: '127.0.0.1' };
  };
  const service = createNoticeService({
    store,
    clock: systemClock,
    logger: createLogger({ app: 'test', level: 'silent' }),
    metrics: { notice: () => undefined, noticeGivenUp: () => undefined },
    holder: 'this',
    target: { url: 'https://example.com/', secret: 'secret', sender: { send, close: () => undefined } },
    isCutOff: () => false,
  });
  await service.start();
  await posting.promise;
  await store.redis.set(`${store.prefix}:{0}:notifier`, 'another');
  leaseIsGone.resolve();
  await service.stop(0);
  expect(await waitingNotices(store, 0, 100, {})).toHaveLength(15);
});
