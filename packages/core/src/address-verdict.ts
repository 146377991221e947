/** The verdict on an address: one sentence that says what is wrong and since when, or null if nothing is. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from './basics/time.ts';
import type { AddressHealth } from './health.ts';
import type { StatusReason, SubscriptionStatus } from './subscription.ts';

/** A refusal that begins within this time after a rotation, or after the end of its overlap, is blamed on it. */
const ROTATION_BLAME_MS = HOUR_MS;
/** The share of the time limit from which slow responses are worth a sentence. */
const NEAR_TIMEOUT = 0.75;
/** Below this share of successes, an address that is not failing gets a sentence too; from this many attempts on. */
const GOOD_RATE = 0.9;
const MIN_FOR_RATE = 20;

/** What the verdict follows from. */
export interface VerdictFacts {
  status: SubscriptionStatus;
  statusReason: StatusReason | null;
  health: AddressHealth;
  /** The last rotation of the signing secret, and when the previous secret stopped signing; null if there was none. */
  rotatedAtMs: number | null;
  previousSecretUntilMs: number | null;
  /** What 99 % of its attempts stay within, if that is slow; and the time limit of an attempt. */
  p99Ms: number | null;
  attemptTimeoutMs: number | null;
  /** The end of the certificate that was refused as expired; null if it is not known. */
  certificateValidToMs: number | null;
}

/** Returns the verdict at `nowMs`. Times in it are in UTC. */
export function verdictOn(facts: VerdictFacts, nowMs: number): string | null {
  const { health, status, statusReason, p99Ms, attemptTimeoutMs } = facts;
  if (health.state === 'failing') return failingVerdict(facts, nowMs);
  if (status === 'paused') return statusReason === 'operator' ? 'Paused by an operator.' : 'Paused after failures.';
  const { attempts, succeeded } = health.recent;
  if (attempts >= MIN_FOR_RATE && succeeded < GOOD_RATE * attempts) {
    const cause = health.error ? ` Most failures: ${health.error.label}.` : '';
    return `${percent(succeeded / attempts)} of the attempts of the last 15 minutes succeeded.${cause}`;
  }
  if (p99Ms !== null && attemptTimeoutMs !== null && p99Ms >= NEAR_TIMEOUT * attemptTimeoutMs)
    return `p99 ${seconds(Math.min(p99Ms, attemptTimeoutMs))} of ${seconds(attemptTimeoutMs)}.`;
  return null;
}

function failingVerdict(facts: VerdictFacts, nowMs: number): string {
  const { error, failingSinceMs, lastSucceededAtMs, failedInARow } = facts.health;
  const sinceMs = failingSinceMs ?? nowMs;
  const since = sinceText(sinceMs, nowMs);
  if (!error) return `Failing ${since}.`;
  const { label } = error;
  if (label === 'tls CERT_HAS_EXPIRED') return expiredVerdict(facts.certificateValidToMs, since, nowMs);
  const rotation = label === '401' || label === '403' ? blamedRotation(facts, sinceMs) : null;
  if (rotation) return `Signature refused since the ${rotation.what} at ${timeText(rotation.atMs, nowMs)}.`;
  const known = label === 'dns ENOTFOUND' && lastSucceededAtMs !== null ? 'Name no longer resolves' : CAUSES[label];
  const [what = label, advice] = (known ?? label).split(': ');
  // Some attempts succeed: the address is not down. Those before it began to fail do not count, however recent.
  const succeedsAtTimes = failedInARow === 0 || facts.health.recent.succeeded > 0;
  const share = succeedsAtTimes && (lastSucceededAtMs ?? sinceMs) >= sinceMs ? ' for part of the attempts' : '';
  // It failed otherwise before: with a timeout, for example.
  const isLater = error.sinceMs - sinceMs >= MINUTE_MS;
  const both = isLater ? `${sinceText(error.sinceMs, nowMs)}, failing ${since}` : since;
  return `${what}${share} ${both}${advice ? `: ${advice}` : ''}.`;
}

/** What a label means, and after a colon what follows from it. */
const CAUSES: Readonly<Record<string, string>> = {
  '401': '401: the receiver may refuse the signature',
  '403': '403: the receiver or a firewall before it refuses the request',
  '404': '404: nothing listens at this path',
  '410': '410: the receiver says that the address is gone for good',
  '413': '413: the receiver refuses bodies of this size',
  '429': '429: the receiver wants fewer requests',
  timeout: 'No response within the time limit',
  'dns ENOTFOUND': 'Name does not resolve',
  'dns ENODATA': 'Name has no IP',
  'dns ESERVFAIL': 'Name servers of the name fail',
  'dns EREFUSED': 'Name servers refuse the query',
  'dns ETIMEOUT': 'Name servers do not respond',
  'dns TOO_MANY_IPS': 'Name has more than 100 IPs of a family',
  'connection ECONNREFUSED': 'Connection refused: nothing listens on this port',
  'connection ECONNRESET': 'Connection closed without a response',
  'connection ETIMEDOUT': 'No connection',
  'connection EHOSTUNREACH': 'No route to the IP',
  'connection ENETUNREACH': 'No route to the IP',
  'connection INVALID_RESPONSE': 'Response is not HTTP',
  'connection UPGRADE': '101: the receiver switches to another protocol',
  'connection RESPONSE_TOO_LARGE': 'Response has no status in its first 32 KiB',
  'connection TOO_MANY_CHUNKS': 'Response comes in more than 1,000 pieces',
  'connection TOO_MANY_INTERIM_RESPONSES': 'More than 16 interim responses (1xx)',
  'tls ERR_TLS_CERT_ALTNAME_INVALID': 'Certificate is for another name',
  'tls CERT_NOT_YET_VALID': 'Certificate is not valid yet',
  'tls DEPTH_ZERO_SELF_SIGNED_CERT': 'Certificate is self-signed',
  'tls SELF_SIGNED_CERT_IN_CHAIN': 'Certificate is from an unknown authority',
  'tls UNABLE_TO_VERIFY_LEAF_SIGNATURE': 'Certificate chain is incomplete',
  'tls UNABLE_TO_GET_ISSUER_CERT_LOCALLY': 'Certificate chain is incomplete',
  'tls ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED': 'Receiver requires a client certificate',
  'tls ERR_SSL_WRONG_VERSION_NUMBER': 'Receiver does not use TLS on this port: http may be meant',
  'tls ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION': 'Receiver supports neither TLS 1.2 nor 1.3',
  'tls ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL': 'Receiver does not support HTTP/1.1',
  'tls ERR_SSL_TLSV1_UNRECOGNIZED_NAME': 'Receiver has no certificate for this name',
  'tls ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE':
    'Receiver refuses the TLS handshake: it may require a client certificate or other ciphers',
  'private address': 'Name resolves to a private IP',
  'local address': 'Name resolves to a local IP',
  '301': 'Redirect (301): set the final address',
  '302': 'Redirect (302): set the final address',
  '307': 'Redirect (307): set the final address',
  '308': 'Redirect (308): set the final address',
};

/** The rotation, or the end of its overlap, after which a refusal began. */
function blamedRotation(facts: VerdictFacts, sinceMs: number): { what: string; atMs: number } | null {
  const { rotatedAtMs, previousSecretUntilMs } = facts;
  if (rotatedAtMs === null) return null;
  const begins = (atMs: number) => sinceMs >= atMs && sinceMs <= atMs + ROTATION_BLAME_MS;
  if (begins(rotatedAtMs)) return { what: 'rotation', atMs: rotatedAtMs };
  if (previousSecretUntilMs === null || !begins(previousSecretUntilMs)) return null;
  return { what: 'end of the previous secret', atMs: previousSecretUntilMs };
}

function expiredVerdict(validToMs: number | null, since: string, nowMs: number): string {
  if (validToMs === null || validToMs > nowMs) return `Certificate expired; refused ${since}.`;
  const days = Math.floor(nowMs / DAY_MS) - Math.floor(validToMs / DAY_MS);
  if (days === 0) return `Certificate expired today at ${timeText(validToMs, nowMs)}.`;
  return days === 1 ? 'Certificate expired yesterday.' : `Certificate expired ${days} days ago.`;
}

/** `since 14:02 UTC`, or after two days `for 3 days`. */
function sinceText(sinceMs: number, nowMs: number): string {
  const days = Math.floor((nowMs - sinceMs) / DAY_MS);
  return days >= 2 ? `for ${days} days` : `since ${timeText(sinceMs, nowMs)}`;
}

/** `14:02 UTC`, and with the day unless it is today. */
function timeText(ms: number, nowMs: number): string {
  const [day = '', time = ''] = new Date(ms).toISOString().split('T');
  const isToday = Math.floor(ms / DAY_MS) === Math.floor(nowMs / DAY_MS);
  return `${isToday ? '' : `${day} `}${time.slice(0, 5)} UTC`;
}

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(1))} s`;
}

function percent(share: number): string {
  return `${Math.floor(100 * share)} %`;
}
