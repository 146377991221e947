/** Builds what came back from an attempt: bounded, and as text that is safe to show. */
import {
  type AttemptConnection,
  type AttemptResponse,
  type CameBack,
  KEPT_HEADERS,
  plainLine,
  plainText,
} from '@posthorn/core';
import type { OpeningSteps } from './opening-steps.ts';
import type { SendOutcome } from './result.ts';

/** Characters that are kept of a header. */
const MAX_FIELD_CHARS = 256;

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Collects the beginning of a body, up to `maxBytes`. */
export class BodyExcerpt {
  readonly #maxBytes: number;
  readonly #headers: ResponseHeaders;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #received = 0;
  #hasEnded = false;

  constructor(headers: ResponseHeaders, maxBytes: number) {
    this.#headers = headers;
    this.#maxBytes = maxBytes;
  }

  add(chunk: Uint8Array): void {
    this.#received += chunk.length;
    if (this.isFull()) return;
    // A copy: the chunk is a part of a much larger buffer.
    const kept = Buffer.from(chunk.subarray(0, this.#maxBytes - this.#bytes));
    this.#bytes += kept.length;
    this.#chunks.push(kept);
  }

  end(): void {
    this.#hasEnded = true;
  }

  isFull(): boolean {
    return this.#bytes >= this.#maxBytes;
  }

  /** Returns what has arrived by now. */
  response(): AttemptResponse {
    const headers: Record<string, string> = {};
    for (const name of KEPT_HEADERS) {
      const value = this.#headers[name];
      if (value !== undefined) headers[name] = plainLine(String(value), MAX_FIELD_CHARS);
    }
    const isEncoded = (headers['content-encoding'] ?? 'identity') !== 'identity';
    return {
      headers,
      body: isEncoded ? '' : textOf(Buffer.concat(this.#chunks), this.#maxBytes),
      isBodyTruncated: !this.#hasEnded || this.#received > this.#bytes,
    };
  }
}

/** What of an attempt is known for `cameBack`. */
interface Exchanged {
  outcome: SendOutcome;
  excerpt: BodyExcerpt | undefined;
  /** How the connection was opened; undefined if none was. */
  opening: OpeningSteps | undefined;
  isReused: boolean;
  firstByteMs: number | null;
}

export function cameBack({ outcome, excerpt, opening, isReused, firstByteMs }: Exchanged): CameBack {
  const steps = isReused ? undefined : opening;
  const connection: AttemptConnection = {
    ip: outcome.ip,
    isReused,
    dnsMs: steps?.dnsMs ?? null,
    connectMs: steps?.connectMs ?? null,
    tlsMs: steps?.tlsMs ?? null,
    firstByteMs,
    errorCode: outcome.kind === 'connection_failed' ? outcome.detail : null,
    certificate: opening?.certificate ?? null,
  };
  return { response: outcome.kind === 'responded' ? (excerpt?.response() ?? null) : null, connection };
}

/**
 * Returns the text of a body, at most `maxBytes` long, without a character that was cut at the end. Replacement
 * characters take more bytes than what they replace, so the text may have to be cut once more.
 */
function textOf(body: Buffer, maxBytes: number): string {
  const text = plainText(new TextDecoder().decode(body, { stream: true }));
  const bytes = Buffer.from(text);
  return bytes.length <= maxBytes ? text : new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
}
