/** A name or a URL that breaks after a dot, an underscore or a slash if it is too long for its line. */
import { Fragment } from 'react';

export function Breakable({ text }: { text: string }) {
  return text.split(/(?<=[._/])(?!\/)/).map((part, index) => (
    // The parts of a text never change their places.
    // biome-ignore lint/suspicious/noArrayIndexKey: see above
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ));
}
