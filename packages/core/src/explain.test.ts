/** What became of an event at an address, with and without a delivery. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, HOUR_MS } from './basics/time.ts';
import type { Delivery } from './delivery.ts';
import { type Case, explain } from './explain.ts';

const acceptedAtMs = Date.UTC(2026, 10, 20, 12);
const event: NonNullable<Case['event']> = {
  type: 'session.approved',
  environment: 'production',
  acceptedAtMs,
  isMatched: false,
};
const subscription: NonNullable<Case['subscription']> = {
  status: 'active',
  resuming: false,
  statusReason: null,
  takesEvents: true,
  eventTypes: 'all',
  environment: 'both',
  createdAtMs: acceptedAtMs - HOUR_MS,
};
const delivery: Delivery = {
  id: 'dlv_1',
  eventId: 'evt_1',
  eventType: 'session.approved',
  environment: 'production',
  subscriptionId: 'sub_1',
  status: 'pending',
  attemptCount: 0,
  maxAttempts: 6,
  nextAttemptAtMs: null,
  replayOf: null,
  failureReason: null,
  createdAtMs: acceptedAtMs,
  finishedAtMs: null,
  attempts: [],
  erased: false,
};
const failed = {
  number: 1,
  startedAtMs: acceptedAtMs + 1_000,
  durationMs: 500,
  statusCode: 503,
  error: 'status',
} as const;
const facts: Case = {
  event,
  subscription,
  delivery: undefined,
  lane: undefined,
  pausedAtMs: undefined,
  deletedAtMs: undefined,
  changed: undefined,
  retentionMs: 30 * DAY_MS,
  succeededRetentionMs: 7 * DAY_MS,
  nowMs: acceptedAtMs + 2 * HOUR_MS,
};
const explained = (change: Partial<Case>) => explain({ ...facts, ...change });
const ofDelivery = (change: Partial<Delivery>, more: Partial<Case> = {}) =>
  explained({ event: { ...event, isMatched: true }, delivery: { ...delivery, ...change }, ...more });

describe('explain, without a delivery', () => {
  const changed = { atMs: acceptedAtMs + HOUR_MS, operator: 'anna' };
  it.each<[string, Partial<Case>, RegExp]>([
    [
      'no_event',
      { event: undefined },
      /never accepted, or it has expired. Events are kept for 30 days, or for 7 days if all their deliveries have succeeded/,
    ],
    ['no_event', { event: undefined, succeededRetentionMs: 30 * DAY_MS }, /Events are kept for 30 days\.$/],
    ['no_subscription', { subscription: undefined }, /no such subscription/],
    [
      'no_subscription',
      { subscription: undefined, deletedAtMs: acceptedAtMs },
      /was deleted at 2026-11-20 12:00:00 UTC/,
    ],
    ['test_of_another', { event: { ...event, type: 'webhook.test' } }, /one other address only/],
    ['created_later', { subscription: { ...subscription, createdAtMs: acceptedAtMs + 1 } }, /did not exist yet/],
    [
      'other_environment',
      { subscription: { ...subscription, environment: 'sandbox' } },
      /receives sandbox events; this is a production event/,
    ],
    [
      'other_type',
      { subscription: { ...subscription, eventTypes: ['session.expired'] } },
      /did not select session.approved. It receives session.expired/,
    ],
    [
      'not_validated',
      { subscription: { ...subscription, takesEvents: false, statusReason: 'unreachable' } },
      /never been validated.* could not be reached/,
    ],
    ['changed_later', {}, /matches such events now, but did not when the event was accepted\.$/],
    ['changed_later', { changed }, /changed later: at 2026-11-20 13:00:00 UTC, by anna/],
    ['being_made', { event: { ...event, isMatched: true }, nowMs: acceptedAtMs + 59_999 }, /being made/],
    ['no_longer_kept', { event: { ...event, isMatched: true }, nowMs: acceptedAtMs + 60_000 }, /no longer kept/],
  ])('%s (%#)', (reason, change, answer) => {
    expect(explained(change)).toMatchObject({ reason, answer: expect.stringMatching(answer) });
  });

  it('names the creation first, since a subscription that is too young needs no other reason', () => {
    const young = {
      ...subscription,
      createdAtMs: acceptedAtMs + 1,
      environment: 'sandbox',
      takesEvents: false,
    } as const;
    expect(explained({ subscription: young }).reason).toBe('created_later');
  });
});

describe('explain, with a delivery', () => {
  it('says when it was delivered, by which attempt, with which status', () => {
    const attempts = [
      { ...failed, number: 1 },
      { ...failed, number: 2, statusCode: 204, error: null },
    ];
    const end = { status: 'succeeded', attempts, attemptCount: 2, finishedAtMs: acceptedAtMs + 5_000 } as const;
    expect(ofDelivery({ ...end })).toEqual({
      reason: 'delivered',
      answer: 'Delivered at 2026-11-20 12:00:05 UTC: attempt 2, response status 204.',
      nextStep: null,
      sinceMs: acceptedAtMs + 5_000,
      dueAtMs: null,
    });
  });
  it('says why it failed, even if event and subscription are gone', () => {
    const end = {
      status: 'failed',
      failureReason: 'status',
      attempts: [failed],
      attemptCount: 1,
      finishedAtMs: acceptedAtMs,
    } as const;
    const gone = { event: undefined, subscription: undefined };
    expect(ofDelivery({ ...end, attempts: [failed] }, gone)).toMatchObject({
      reason: 'failed',
      answer: 'Failed at 2026-11-20 12:00:00 UTC, after 1 attempt. The response had an error status (503).',
      nextStep: expect.stringMatching(/Replay/),
    });
  });
  it.each([
    ['subscription_deleted', /its subscription was deleted/],
    ['expired', /not active for the whole retention/],
    ['cancelled', /its bulk replay was cancelled/],
    ['erased', /its payload was erased/],
  ] as const)('says that it ended without an attempt: %s', (failureReason, answer) => {
    expect(ofDelivery({ status: 'failed', failureReason, finishedAtMs: acceptedAtMs }).answer).toMatch(answer);
  });
  it('says that a delivery ended because its event is gone', () => {
    const lost = { status: 'failed', failureReason: 'expired', finishedAtMs: acceptedAtMs } as const;
    expect(ofDelivery(lost, { event: undefined })).toMatchObject({
      answer: expect.stringMatching(/its event is not stored any more: a failover may have lost it/),
      nextStep: 'Publish the event again.',
    });
  });
  it('says what failed last and when the next attempt is due', () => {
    const dueAtMs = facts.nowMs + HOUR_MS;
    const waiting = {
      status: 'waiting_for_retry',
      attempts: [failed],
      attemptCount: 1,
      nextAttemptAtMs: dueAtMs,
    } as const;
    expect(ofDelivery({ ...waiting, attempts: [failed] })).toMatchObject({
      reason: 'waiting_for_retry',
      answer:
        'Attempt 1 of 6 failed. The response had an error status (503). Attempt 2 is due at 2026-11-20 15:00:00 UTC.',
      sinceMs: acceptedAtMs + 1_500,
      dueAtMs,
    });
    expect(ofDelivery({ ...waiting, attempts: [failed] }).nextStep).toMatch(/try the delivery now/);
    const late = { ...waiting, attempts: [failed], nextAttemptAtMs: facts.nowMs };
    expect(ofDelivery(late, { lane: 'overdue' }).answer).toMatch(/It is overdue/);
  });
  it.each([
    ['paused', /Its address is paused since 2026-11-20 13:00:00 UTC, so it is held then\.$/, /^Resume the address/],
    ['awaiting_validation', /Its address is not validated, so it is held then\.$/, /then validate the address/],
    ['refused', /Its address was refused, so it is held then\.$/, /then validate the address/],
  ] as const)('says that a retry is not sent to an address that is %s', (status, answer, nextStep) => {
    const waiting = { status: 'waiting_for_retry', attemptCount: 1, nextAttemptAtMs: facts.nowMs + HOUR_MS } as const;
    const stopped = { subscription: { ...subscription, status }, pausedAtMs: acceptedAtMs + HOUR_MS };
    expect(ofDelivery({ ...waiting, attempts: [failed] }, stopped)).toMatchObject({
      answer: expect.stringMatching(answer),
      nextStep: expect.stringMatching(nextStep),
    });
  });
  it('does not blame the certificate for every failure of TLS', () => {
    const attempts = [{ ...failed, statusCode: null, error: 'tls' } as const];
    expect(ofDelivery({ status: 'waiting_for_retry', attempts, attemptCount: 1 }).answer).toContain(
      'TLS failed: the certificate was not valid, or the receiver refused the handshake.',
    );
  });
  it('says what a delivery without an attempt waits for', () => {
    expect(ofDelivery({}).answer).toMatch(/waits for a worker/);
    expect(ofDelivery({}, { nowMs: acceptedAtMs + 10_000 }).nextStep).toBeNull();
    expect(ofDelivery({}, { nowMs: acceptedAtMs + 10_001 }).nextStep).toMatch(
      /whether workers are running.*secret\.unreadable/,
    );
    expect(ofDelivery({}, { lane: 'parked' })).toMatchObject({
      answer: expect.stringMatching(/all slots of the address are taken/),
      nextStep: null,
    });
  });
  it('says since when it is held, and why', () => {
    const paused = { ...subscription, status: 'paused', statusReason: 'consecutive_failures' } as const;
    const held = (pausedAtMs: number) => ofDelivery({ status: 'held' }, { subscription: paused, pausedAtMs });
    expect(held(acceptedAtMs - HOUR_MS)).toMatchObject({
      reason: 'held',
      sinceMs: acceptedAtMs,
      answer:
        'Held since 2026-11-20 12:00:00 UTC, because its address is paused since 2026-11-20 11:00:00 UTC. Too many consecutive deliveries failed.',
    });
    // It waited for its retry when the address was paused.
    expect(held(acceptedAtMs + HOUR_MS).sinceMs).toBe(acceptedAtMs + HOUR_MS);
    const refused = { ...subscription, status: 'refused', statusReason: 'redirect' } as const;
    expect(ofDelivery({ status: 'held' }, { subscription: refused }).answer).toMatch(/was refused. It responded/);
    expect(ofDelivery({ status: 'held' }).answer).toMatch(/being released/);
    const resuming = { ...subscription, resuming: true };
    expect(ofDelivery({ status: 'held' }, { subscription: resuming }).answer).toMatch(
      /One held delivery is sent first/,
    );
  });
});
