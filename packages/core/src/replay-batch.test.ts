/** The outcome of a batch of bulk replays as one. */
import { describe, expect, it } from '@jest/globals';
import { batchProgress, type Replay, type ReplayStatus } from './index.ts';

const replay = (status: ReplayStatus, fields: Partial<Replay> = {}): Replay => ({
  id: 'rpl_',
  subscriptionId: 'sub_',
  fromMs: 0,
  toMs: 1,
  filter: { eventType: null, error: null, failedFromMs: null, failedToMs: null },
  batchId: 'rpb_',
  canary: false,
  status,
  total: 7,
  replayed: 5,
  skipped: 2,
  outcome: { delivered: 1, failed: 1, cancelled: 1, waiting: 1, unknown: 1 },
  createdAtMs: 0,
  finishedAtMs: null,
  operator: 'anna',
  ...fields,
});

describe('the progress of a batch', () => {
  it('is the sum of its replays', () => {
    const { status: _, finishedAtMs: __, ...sums } = batchProgress([replay('running'), replay('done')], 0);
    expect(sums).toEqual({
      total: 14,
      replayed: 10,
      skipped: 4,
      outcome: { delivered: 2, failed: 2, cancelled: 2, waiting: 2, unknown: 2 },
    });
  });
  it.each<[ReplayStatus[], ReplayStatus]>([
    [['done', 'halted', 'running', 'canary'], 'running'],
    [['done', 'halted', 'canary'], 'canary'],
    [['done', 'halted', 'cancelled'], 'halted'],
    [['failed', 'cancelled', 'done'], 'done'],
    [['failed', 'cancelled'], 'cancelled'],
    [['failed', 'failed'], 'failed'],
  ])('of replays that are %j is %s', (statuses, expected) => {
    expect(
      batchProgress(
        statuses.map((status) => replay(status)),
        0,
      ).status,
    ).toBe(expected);
  });
  it('is running while one is not started yet, and ends with its last replay', () => {
    const ended = [replay('done', { finishedAtMs: 3 }), replay('failed', { finishedAtMs: 5 })];
    expect(batchProgress(ended, 0)).toMatchObject({ status: 'done', finishedAtMs: 5 });
    expect(batchProgress(ended, 1)).toMatchObject({ status: 'running', finishedAtMs: null });
    expect(batchProgress([...ended, replay('halted')], 0).finishedAtMs).toBeNull();
  });
});
