/** Shortens text for lists. */

/** Returns text of at most `max` characters: of a longer one the beginning, and `…`. */
export function cutText(text: string, max: number): string {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`;
}
