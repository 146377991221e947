/** Collects the chunks of a body, within its limit. */

/** Most events are smaller. */
const FIRST_BYTES = 4096;

/**
 * Returns a collector of at most `maxBytes`. It copies each chunk: a body in chunks of a byte, each kept as an object,
 * takes hundreds of times its size.
 */
export function collectBody(maxBytes: number) {
  let bytes = new Uint8Array(FIRST_BYTES);
  let size = 0;
  return {
    /** Returns false, and ignores the chunk, if the body is too large with it. */
    add(chunk: Uint8Array): boolean {
      const sizeWith = size + chunk.length;
      if (sizeWith > maxBytes) return false;
      if (sizeWith > bytes.length) {
        const larger = new Uint8Array(Math.max(2 * bytes.length, sizeWith));
        larger.set(bytes);
        bytes = larger;
      }
      bytes.set(chunk, size);
      size = sizeWith;
      return true;
    },
    whole: (): Uint8Array<ArrayBuffer> => bytes.slice(0, size),
  };
}
