/** Mutations that need not be noticed, each with its reason: most have no observable effect. */
import type { Outcome } from './mutant.ts';

interface Accepted {
  file: string;
  original: string;
  /** Undefined: any replacement. */
  replacement?: string;
  reason: string;
}

const SECRET_BOX = 'packages/signing/src/secret-box.ts';
const GUARD = 'packages/sender/src/guard.ts';
const SIGNATURE = 'packages/receiver/src/signature.ts';
const IDS = 'packages/core/src/ids.ts';
const DURATIONS = 'packages/core/src/basics/durations.ts';
const JSON_READER = 'packages/core/src/basics/json.ts';

export const ACCEPTED: readonly Accepted[] = [
  {
    file: SECRET_BOX,
    original: 'key.length === 32',
    replacement: 'true',
    reason: '43 characters of base64 are 32 bytes: the pattern after it refuses the same texts.',
  },
  { file: SECRET_BOX, original: "'utf8'", reason: 'UTF-8 is the default of the cipher.' },
  {
    file: SECRET_BOX,
    original: '{\n    return undefined;\n  }',
    reason: 'The function also returns undefined without it.',
  },
  ...["url.username !== ''", "url.password !== ''", "url.username !== '' || url.password !== ''"].map((original) => ({
    file: GUARD,
    original,
    reason:
      'The pattern on the raw text refuses the same; this checks the result of the parser, which also determines the host.',
  })),
  ...['key === undefined', 'keys.size >= MAX_KEYS', 'keys.clear()', 'keys.set(secret, key)'].map((original) => ({
    file: SIGNATURE,
    original,
    reason: 'Keys are only kept to save time, and not too many of them, to save memory.',
  })),
  {
    file: 'packages/receiver/src/receiver.ts',
    original: 'last.get(name) === ended',
    replacement: 'false',
    reason: 'It only frees memory.',
  },
  { file: IDS, original: 'i < ENDINGS', replacement: 'i <= ENDINGS', reason: 'The first ending is tried again.' },
  { file: IDS, original: 'partitions === 1', replacement: 'false', reason: 'Everything modulo 1 is 0.' },
  { file: DURATIONS, original: 'ms <= 1', replacement: 'ms < 1', reason: 'The logarithm of 1 is 0 too.' },
  {
    file: JSON_READER,
    original: 'context.source === undefined',
    replacement: 'false',
    reason: 'A number that was parsed always has a source; the type does not say so.',
  },
  {
    file: JSON_READER,
    original: 'i < text.length',
    replacement: 'i <= text.length',
    reason: 'Behind the end there is no character code to compare with.',
  },
  {
    file: JSON_READER,
    original: '/(?:^|[:,[])\\s*-?(?:[\\d.]{16}|\\d+\\.\\d*0(?!\\d)|[\\d.]+[eE]|(?<=-)0|0\\.0{6})/',
    reason:
      'The pattern only saves time: if it matches too much, numbers are compared one by one and remain unchanged.',
  },
];

/** Returns why a survivor is accepted; undefined if it is not. */
export function reasonFor({ file, original, replacement }: Outcome): string | undefined {
  return ACCEPTED.find(
    (one) =>
      one.file === file &&
      one.original === original &&
      (one.replacement === undefined || one.replacement === replacement),
  )?.reason;
}
