/** Shows a url of any length: its beginning, or a link to its subscription, in one line or with a button to copy it. */
import { Copyable } from './code.tsx';
import { Note, PageLink } from './layout.tsx';

/** Characters of an address that a heading or a sentence shows: an address may have two thousand. */
const MAX_SHORT = 160;

/** Returns the beginning of a very long url, or all of it. */
export const shortAddress = (url: string) => (url.length > MAX_SHORT ? `${url.slice(0, MAX_SHORT)}…` : url);

/** Of a very long url the first lines are shown; the tooltip and the copy have all of it. */
export function CopyableAddress({ id, url }: { id: string; url: string | undefined }) {
  const link = (
    <PageLink to={`/subscriptions/${id}`} className="mono" lineClamp={3} {...(url !== undefined && { title: url })}>
      {url ?? id}
    </PageLink>
  );
  return url === undefined ? (
    link
  ) : (
    <Copyable value={url} what="address">
      {link}
    </Copyable>
  );
}

/** The link in one line, and below it the description of the subscription. */
export function AddressLink({ id, url, description }: { id: string; url: string; description?: string }) {
  return (
    <>
      <PageLink to={`/subscriptions/${id}`} truncate title={url}>
        {url}
      </PageLink>
      {description && (
        <Note size="xs" truncate>
          {description}
        </Note>
      )}
    </>
  );
}
