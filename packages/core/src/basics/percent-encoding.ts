/** Percent-encoded text, as in URLs. */

/** Whether `decodeURIComponent` can decode a text. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
