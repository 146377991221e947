/** What an entry of the audit trail says in lists. */
import { describe, expect, it } from '@jest/globals';
import { AUDIT_ACTIONS, type AuditAction } from './audit.ts';
import { summarizeAudit } from './audit-summary.ts';
import { HOUR_MS } from './basics/time.ts';

const AT_MS = Date.parse('2026-11-22T08:00:00Z');
const summary = (action: AuditAction, detail?: Record<string, unknown>) => summarizeAudit({ action, detail }, AT_MS);

describe('the summary of an audit entry', () => {
  it.each<[AuditAction, Record<string, unknown>, string]>([
    [
      'subscription.created',
      { url: 'https://a.example/', event_types: 'all', environment: 'both', description: 'Acme' },
      'Created the subscription for all event types in both environments. Description: “Acme”.',
    ],
    [
      'subscription.updated',
      {
        url: { from: 'https://a.example/', to: 'https://b.example/' },
        event_types: { from: 'all', to: ['session.created', 'session.expired'] },
        description: { from: '', to: 'Acme' },
        status: { from: 'active', to: 'awaiting_validation' },
      },
      'Changed the address from https://a.example/ to https://b.example/, the event types from all event types to session.created, session.expired, the description from none to “Acme”, and the status from active to awaiting validation.',
    ],
    ['subscription.deleted', { url: 'https://a.example/' }, 'Deleted the subscription to https://a.example/.'],
    ['subscription.validated', { status: 'active', reason: null }, 'Validated the address: it is now active.'],
    [
      'subscription.validated',
      { status: 'refused', reason: 'private_address' },
      'Validated the address: it is now refused (private address).',
    ],
    ['subscription.paused', { reason: 'operator' }, 'Paused the address.'],
    [
      'subscription.paused',
      { reason: 'consecutive_failures', consecutive_failures: 20 },
      'Paused the address after 20 failed deliveries in a row.',
    ],
    [
      'subscription.resumed',
      { was_paused_for: 'consecutive_failures', consecutive_failures: 1 },
      'Resumed the address, which was paused after 1 failed delivery in a row.',
    ],
    [
      'subscription.resumed',
      { was_paused_for: 'consecutive_failures', consecutive_failures: 0 },
      'Resumed the address, which was paused after failed deliveries in a row.',
    ],
    ['subscription.resumed', { was_paused_for: 'operator' }, 'Resumed the address, which an operator had paused.'],
    [
      'subscription.secret_rotated',
      { previous_secret_until: '2026-11-23T08:00:00.000Z' },
      'Rotated the signing secret. The previous one signs until 2026-11-23 08:00:00 UTC.',
    ],
    [
      'subscription.secret_rotated',
      { previous_secret_until: '2026-11-22T08:00:00.000Z' },
      'Rotated the signing secret. The previous one stopped signing at once.',
    ],
    [
      'replay.started',
      {
        from: null,
        to: '2026-11-22T08:00:00.000Z',
        total: 84,
        event_type: 'session.approved',
        error: 'address_blocked',
        failed_from: AT_MS - HOUR_MS,
        canary: true,
      },
      'Started a bulk replay of 84 failed deliveries created until 2026-11-22 08:00:00 UTC, of type session.approved, that failed with address blocked, that failed since 2026-11-22 07:00:00 UTC. A few go first, and the others only if those arrive.',
    ],
    ['delivery.tried_now', { deliveries: 3 }, 'Asked to make the next attempts of 3 deliveries due at once.'],
    ['delivery.tried_now', { deliveries: 1 }, 'Asked to make the next attempt of 1 delivery due at once.'],
    [
      'replay.cancelled',
      { total: 84, replayed: 1, delivered: 0, failed: 0, waiting: 1 },
      'Cancelled a bulk replay when 1 of 84 was replayed: 0 delivered, 1 waiting.',
    ],
    [
      'replay.cancelled',
      { total: 84, replayed: 30, delivered: 20, failed: 3, waiting: 7 },
      'Cancelled a bulk replay when 30 of 84 were replayed: 20 delivered, 3 failed, 7 waiting.',
    ],
    [
      'replay.continued',
      { total: 84, replayed: 5, delivered: 5, failed: 0, waiting: 0 },
      'Continued a bulk replay when 5 of 84 were replayed: 5 delivered.',
    ],
    [
      'erasure.started',
      { field: 'session_id', events: 1, unsent: 'end' },
      'Confirmed the erasure of the payloads of a session (1 event). Unsent deliveries end.',
    ],
    [
      'erasure.started',
      { field: 'user_id', unsent: 'deliver' },
      'Confirmed the erasure of the payloads of a user. Unsent deliveries are sent first.',
    ],
    [
      'erasure.done',
      { field: 'reference', erased_events: 12, ended_deliveries: 3 },
      'Erased the payloads of 12 events of a reference. 3 deliveries ended unsent.',
    ],
    [
      'erasure.cancelled',
      { field: 'user_id', erased_events: 1, events: 3 },
      'Cancelled the erasure of the payloads of a user when 1 of 3 events was erased.',
    ],
    ['erasure.done', { field: 'event_id', erased_events: 1 }, 'Erased the payload of an event.'],
  ])('of %s with %j', (action, detail, expected) => {
    expect(summary(action, detail)).toBe(expected);
  });

  it.each(AUDIT_ACTIONS)(
    'of %s is a sentence, whatever details an earlier version left out or wrote otherwise',
    (action) => {
      const odd = {
        url: 7,
        total: 'x',
        reason: {},
        from: 'never',
        to: [],
        status: null,
        previous_secret_until: 'never',
      };
      for (const detail of [undefined, {}, odd]) expect(summary(action, detail)).toMatch(/^[A-Z].*\.$/);
      expect(summary(action, {})).not.toMatch(/undefined|null|NaN|_/);
    },
  );

  it('of an action that a newer version wrote is its name', () => {
    expect(summary('subscription.painted' as AuditAction)).toBe('subscription.painted.');
  });

  it('cuts off long texts', () => {
    expect(summary('subscription.deleted', { url: `https://a.example/${'x'.repeat(2_000)}` }).length).toBeLessThan(200);
  });
});
