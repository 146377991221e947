/** The sentence that says what is wrong with an address. */
import { describe, expect, it } from '@jest/globals';
import { type VerdictFacts, verdictOn } from './address-verdict.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from './basics/time.ts';
import { type AddressHealth, UNKNOWN_HEALTH } from './health.ts';

const now = Date.parse('2026-03-10T15:30:00Z');
const since = Date.parse('2026-03-10T14:02:00Z');

function facts(change: Partial<VerdictFacts> = {}): VerdictFacts {
  return {
    status: 'active',
    statusReason: null,
    health: { ...UNKNOWN_HEALTH, state: 'healthy' },
    rotatedAtMs: null,
    previousSecretUntilMs: null,
    p99Ms: null,
    attemptTimeoutMs: 8_000,
    certificateValidToMs: null,
    ...change,
  };
}
/** The facts of an address that fails with this error. */
function failing(
  label: string,
  change: Partial<VerdictFacts & Pick<AddressHealth, 'failingSinceMs'> & { errorSinceMs: number }> = {},
) {
  const { failingSinceMs = since, errorSinceMs = failingSinceMs ?? since, ...rest } = change;
  const error = { label, count: 530, sinceMs: errorSinceMs, deliveryId: 'dlv_1', attemptNumber: 1 };
  const health = { ...UNKNOWN_HEALTH, state: 'failing' as const, failingSinceMs, failedInARow: 530, error };
  return facts({ health: { ...health, lastSucceededAtMs: since - 1 }, ...rest });
}
const ofHealth = (change: Partial<AddressHealth>) =>
  facts({ health: { ...UNKNOWN_HEALTH, state: 'healthy', ...change } });

describe('the verdict on an address', () => {
  it.each<[VerdictFacts, string | null]>([
    [facts(), null],
    [facts({ health: UNKNOWN_HEALTH, status: 'awaiting_validation' }), null],
    [facts({ status: 'paused', statusReason: 'operator' }), 'Paused by an operator.'],
    [facts({ status: 'paused', statusReason: 'consecutive_failures' }), 'Paused after failures.'],
    [failing('500'), '500 since 14:02 UTC.'],
    [failing('500', { status: 'paused', statusReason: 'consecutive_failures' }), '500 since 14:02 UTC.'],
    [failing('500', { errorSinceMs: since + MINUTE_MS - 1 }), '500 since 14:02 UTC.'],
    [failing('500', { errorSinceMs: since + MINUTE_MS }), '500 since 14:03 UTC, failing since 14:02 UTC.'],
    [
      failing('401', { errorSinceMs: since + HOUR_MS }),
      '401 since 15:02 UTC, failing since 14:02 UTC: the receiver may refuse the signature.',
    ],
    [failing('500', { failingSinceMs: now - DAY_MS }), '500 since 2026-03-09 15:30 UTC.'],
    [
      failing('410', { failingSinceMs: now - 3 * DAY_MS }),
      '410 for 3 days: the receiver says that the address is gone for good.',
    ],
    [failing('timeout'), 'No response within the time limit since 14:02 UTC.'],
    [failing('dns ENOTFOUND'), 'Name no longer resolves since 14:02 UTC.'],
    [failing('connection ECONNREFUSED'), 'Connection refused since 14:02 UTC: nothing listens on this port.'],
    [failing('connection EPIPE'), 'connection EPIPE since 14:02 UTC.'],
    [failing('connection UPGRADE'), '101 since 14:02 UTC: the receiver switches to another protocol.'],
    [failing('connection INVALID_RESPONSE'), 'Response is not HTTP since 14:02 UTC.'],
    [
      failing('tls ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
      'Receiver requires a client certificate since 14:02 UTC.',
    ],
    [
      failing('tls ERR_SSL_WRONG_VERSION_NUMBER'),
      'Receiver does not use TLS on this port since 14:02 UTC: http may be meant.',
    ],
    [
      failing('tls ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE'),
      'Receiver refuses the TLS handshake since 14:02 UTC: it may require a client certificate or other ciphers.',
    ],
    [failing('tls SELF_SIGNED_CERT_IN_CHAIN'), 'Certificate is from an unknown authority since 14:02 UTC.'],
    [failing('tls CERT_HAS_EXPIRED'), 'Certificate expired; refused since 14:02 UTC.'],
    [
      failing('tls CERT_HAS_EXPIRED', { certificateValidToMs: now - HOUR_MS }),
      'Certificate expired today at 14:30 UTC.',
    ],
    [failing('tls CERT_HAS_EXPIRED', { certificateValidToMs: now - DAY_MS }), 'Certificate expired yesterday.'],
    [failing('tls CERT_HAS_EXPIRED', { certificateValidToMs: now - 9 * DAY_MS }), 'Certificate expired 9 days ago.'],
    [failing('401', { rotatedAtMs: since - MINUTE_MS }), 'Signature refused since the rotation at 14:01 UTC.'],
    [failing('403', { rotatedAtMs: since - MINUTE_MS }), 'Signature refused since the rotation at 14:01 UTC.'],
    [
      failing('401', { rotatedAtMs: since - DAY_MS, previousSecretUntilMs: since - MINUTE_MS }),
      'Signature refused since the end of the previous secret at 14:01 UTC.',
    ],
    [failing('401', { rotatedAtMs: since + 1 }), '401 since 14:02 UTC: the receiver may refuse the signature.'],
    [
      failing('401', { rotatedAtMs: since - 2 * HOUR_MS, previousSecretUntilMs: now + DAY_MS }),
      '401 since 14:02 UTC: the receiver may refuse the signature.',
    ],
    [failing('500', { rotatedAtMs: since - MINUTE_MS }), '500 since 14:02 UTC.'],
    [facts({ p99Ms: 7_600 }), 'p99 7.6 s of 8 s.'],
    [facts({ p99Ms: 9_100 }), 'p99 8 s of 8 s.'],
    [facts({ p99Ms: 5_900 }), null],
    [facts({ p99Ms: 7_600, attemptTimeoutMs: null }), null],
    [ofHealth({ recent: { attempts: 20, succeeded: 17 } }), '85 % of the attempts of the last 15 minutes succeeded.'],
    [ofHealth({ recent: { attempts: 20, succeeded: 18 } }), null],
    [ofHealth({ recent: { attempts: 19, succeeded: 0 } }), null],
  ])('%#: %j is %s', (given, expected) => {
    expect(verdictOn(given, now)).toBe(expected);
  });
  it('names the most frequent error where some attempts fail', () => {
    const recent = { attempts: 100, succeeded: 70 };
    const error = { label: '503', count: 30, sinceMs: since, deliveryId: 'd', attemptNumber: 1 };
    expect(verdictOn(ofHealth({ recent, error }), now)).toBe(
      '70 % of the attempts of the last 15 minutes succeeded. Most failures: 503.',
    );
    expect(verdictOn(ofHealth({ state: 'failing', failingSinceMs: since, recent, error, failedInARow: 1 }), now)).toBe(
      '503 for part of the attempts since 14:02 UTC.',
    );
  });
  it('says that all attempts fail where the recent successes are from before', () => {
    const error = { label: '500', count: 1_520, sinceMs: since, deliveryId: 'd', attemptNumber: 1 };
    const counted = { recent: { attempts: 1_521, succeeded: 1 }, failedInARow: 1_520, error };
    const verdictAt = (lastSucceededAtMs: number) =>
      verdictOn(ofHealth({ state: 'failing', failingSinceMs: since, ...counted, lastSucceededAtMs }), now);
    expect(verdictAt(since - 9_000)).toBe('500 since 14:02 UTC.');
    expect(verdictAt(since + 9_000)).toBe('500 for part of the attempts since 14:02 UTC.');
  });
  it('does not say "no longer" of a name that never resolved', () => {
    const error = { label: 'dns ENOTFOUND', count: 10, sinceMs: since, deliveryId: 'd', attemptNumber: 1 };
    expect(verdictOn(ofHealth({ state: 'failing', failingSinceMs: since, error, failedInARow: 10 }), now)).toBe(
      'Name does not resolve since 14:02 UTC.',
    );
  });
});
