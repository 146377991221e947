/** The state machine of an address, row by row, and what holds for every sequence of events. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type AddressEvent,
  type AddressState,
  AppError,
  NEW_ADDRESS,
  nextAddressState,
  SUBSCRIPTION_STATUSES,
} from './index.ts';

const PAUSE_AFTER = 3;
const failed = { kind: 'delivery_failed', pauseAfter: PAUSE_AFTER } as const;
const refused = { kind: 'refused', reason: 'redirect' } as const;
const awaiting: AddressState = {
  status: 'awaiting_validation',
  resuming: false,
  statusReason: null,
  consecutiveFailures: 1,
  takesEvents: false,
};
const active: AddressState = { ...awaiting, status: 'active', takesEvents: true };
const paused: AddressState = { ...active, status: 'paused', statusReason: 'operator' };
/** Paused by failures before; its trial is not over. */
const resuming: AddressState = { ...active, resuming: true, statusReason: 'consecutive_failures' };
const denied: AddressState = { ...active, status: 'refused', statusReason: 'private_address' };

it('a new address awaits validation and takes no events', () => {
  expect(NEW_ADDRESS).toEqual({
    status: 'awaiting_validation',
    resuming: false,
    statusReason: null,
    consecutiveFailures: 0,
    takesEvents: false,
  });
});

describe('each event in each status (specification 3.2)', () => {
  const again = { status: 'awaiting_validation', resuming: false, statusReason: null, consecutiveFailures: 0 } as const;
  const toActive = { status: 'active', statusReason: null, takesEvents: true } as const;
  const toRefused = { status: 'refused', resuming: false, statusReason: 'redirect' } as const;
  const toPaused = { status: 'paused', resuming: false, statusReason: 'operator' } as const;
  const cleared = { resuming: false, statusReason: null, consecutiveFailures: 0 } as const;
  const toResuming = { status: 'active', resuming: true } as const;
  const back = { status: 'paused', resuming: false } as const;
  const unreachable = { statusReason: 'unreachable' } as const;
  const [same, counted, reset] = [{}, { consecutiveFailures: 2 }, { consecutiveFailures: 0 }];
  it.each<[AddressState, AddressEvent, Partial<AddressState>]>([
    [awaiting, { kind: 'acceptable' }, toActive],
    [active, { kind: 'acceptable' }, toActive],
    [paused, { kind: 'acceptable' }, same],
    [resuming, { kind: 'acceptable' }, same],
    [denied, { kind: 'acceptable' }, toActive],
    [awaiting, refused, toRefused],
    [active, refused, toRefused],
    [paused, refused, toRefused],
    [resuming, refused, toRefused],
    [denied, refused, toRefused],
    [awaiting, { kind: 'unreachable' }, unreachable],
    [active, { kind: 'unreachable' }, same],
    [paused, { kind: 'unreachable' }, same],
    [resuming, { kind: 'unreachable' }, same],
    [denied, { kind: 'unreachable' }, same],
    [awaiting, { kind: 'url_changed' }, again],
    [active, { kind: 'url_changed' }, again],
    [paused, { kind: 'url_changed' }, again],
    [resuming, { kind: 'url_changed' }, again],
    [denied, { kind: 'url_changed' }, again],
    [active, { kind: 'paused' }, toPaused],
    [paused, { kind: 'paused' }, same],
    [{ ...paused, statusReason: 'consecutive_failures' }, { kind: 'paused' }, same],
    [resuming, { kind: 'paused' }, toPaused],
    [active, { kind: 'resumed' }, cleared],
    [paused, { kind: 'resumed' }, toResuming],
    [resuming, { kind: 'resumed' }, same],
    [awaiting, failed, same],
    [active, failed, counted],
    [paused, failed, same],
    [resuming, failed, same],
    [denied, failed, same],
    [awaiting, { kind: 'delivery_succeeded' }, reset],
    [active, { kind: 'delivery_succeeded' }, reset],
    [paused, { kind: 'delivery_succeeded' }, reset],
    [resuming, { kind: 'delivery_succeeded' }, reset],
    [denied, { kind: 'delivery_succeeded' }, reset],
    [active, { kind: 'trial_succeeded' }, same],
    [paused, { kind: 'trial_succeeded' }, same],
    [resuming, { kind: 'trial_succeeded' }, cleared],
    [active, { kind: 'trial_failed' }, same],
    [paused, { kind: 'trial_failed' }, same],
    [resuming, { kind: 'trial_failed' }, back],
  ])('%j after %j', (now, event, change) => {
    expect(nextAddressState(now, event)).toEqual({ ...now, ...change });
  });
  it('an operator pauses and resumes only an address that is active or paused', () => {
    const conflict = (publicMessage: string) => expect.objectContaining({ code: 'conflict', publicMessage });
    expect(() => nextAddressState(awaiting, { kind: 'paused' })).toThrow(AppError);
    expect(() => nextAddressState(denied, { kind: 'paused' })).toThrow(
      conflict('Only an active address can be paused; this one is refused.'),
    );
    expect(() => nextAddressState(awaiting, { kind: 'resumed' })).toThrow(
      conflict('Only a paused address can be resumed; this one is awaiting_validation. Validate it.'),
    );
    expect(() => nextAddressState(denied, { kind: 'resumed' })).toThrow(AppError);
  });
  it('a resume of an address that is resuming changes nothing', () => {
    expect(nextAddressState(resuming, { kind: 'resumed' })).toBe(resuming);
  });
  it('a pause of a paused address changes nothing, and fields that are not of the state stay', () => {
    expect(nextAddressState(paused, { kind: 'paused' })).toBe(paused);
    expect(nextAddressState({ ...paused, url: 'u' }, { kind: 'resumed' })).toMatchObject({ url: 'u' });
  });
});

describe('consecutive failures', () => {
  const fail = (from: AddressState, times: number) =>
    Array.from({ length: times }).reduce<AddressState>((now) => nextAddressState(now, failed), from);
  const fresh = { ...active, consecutiveFailures: 0 };
  it('pause an active address at the limit, not before', () => {
    expect(fail(fresh, PAUSE_AFTER - 1)).toEqual({ ...fresh, consecutiveFailures: PAUSE_AFTER - 1 });
    expect(fail(fresh, PAUSE_AFTER)).toEqual({
      ...fresh,
      status: 'paused',
      statusReason: 'consecutive_failures',
      consecutiveFailures: PAUSE_AFTER,
    });
  });
  it('are counted only while the address is active, and never beyond the limit', () => {
    expect(fail(denied, PAUSE_AFTER + 1)).toEqual(denied);
    expect(fail(fresh, PAUSE_AFTER + 1)).toEqual(fail(fresh, PAUSE_AFTER));
    // The limit was lowered.
    const counted = { ...fresh, consecutiveFailures: PAUSE_AFTER + 4 };
    expect(fail(counted, 1)).toMatchObject({ status: 'paused', consecutiveFailures: PAUSE_AFTER });
  });
  it('are shown again after a resume whose trial failed', () => {
    const limit = fail(fresh, PAUSE_AFTER);
    const tried = nextAddressState(limit, { kind: 'resumed' });
    expect(nextAddressState(tried, { kind: 'trial_failed' })).toEqual(limit);
  });
});

describe('every sequence of events', () => {
  const event = fc.constantFrom<AddressEvent>(
    { kind: 'acceptable' },
    refused,
    { kind: 'unreachable' },
    { kind: 'url_changed' },
    { kind: 'paused' },
    { kind: 'resumed' },
    failed,
    { kind: 'delivery_succeeded' },
    { kind: 'trial_succeeded' },
    { kind: 'trial_failed' },
  );
  /** The states that a new address goes through; an event that is refused leaves it as it is. */
  function statesAfter(events: AddressEvent[]): AddressState[] {
    const states: AddressState[] = [NEW_ADDRESS];
    for (const happened of events) {
      const now = states.at(-1)!;
      try {
        states.push(nextAddressState(now, happened));
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
        states.push(now);
      }
    }
    return states.slice(1);
  }
  it('makes an address active only if it was validated since its url changed and not refused since', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let validated = false;
        for (const [i, { status, takesEvents }] of statesAfter(events).entries()) {
          const { kind } = events[i]!;
          if (kind === 'acceptable') validated = true;
          if (kind === 'refused' || kind === 'url_changed') validated = false;
          expect(status === 'active' || status === 'paused').toBe(validated);
          expect(takesEvents).toBe(events.slice(0, i + 1).some((before) => before.kind === 'acceptable'));
        }
      }),
    );
  });
  it('keeps status and count consistent', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        for (const { status, resuming, statusReason, consecutiveFailures } of statesAfter(events)) {
          expect(SUBSCRIPTION_STATUSES).toContain(status);
          expect(consecutiveFailures).toBeGreaterThanOrEqual(0);
          expect(consecutiveFailures).toBeLessThanOrEqual(PAUSE_AFTER);
          if (resuming) expect(status).toBe('active');
          else if (statusReason === 'operator' || statusReason === 'consecutive_failures')
            expect(status).toBe('paused');
        }
      }),
    );
  });
});
