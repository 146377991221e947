/** Limits how many lines of one kind are logged, where each of them has its own ids. */

/** Further lines within a second are counted, not written. */
const MAX_LINES_PER_SECOND = 5;

type Fields = Record<string, unknown>;

/** Writes the first lines of each second, and at its end one line with the number of `suppressed` ones. */
export function boundedLog(write: (fields: Fields) => void): (fields: Fields) => void {
  let written = 0;
  let suppressed = 0;
  const endSecond = () => {
    if (suppressed > 0) write({ suppressed });
    [written, suppressed] = [0, 0];
  };
  return (fields) => {
    if (written === 0) setTimeout(endSecond, 1_000).unref();
    if (written === MAX_LINES_PER_SECOND) {
      suppressed += 1;
      return;
    }
    written += 1;
    write(fields);
  };
}
