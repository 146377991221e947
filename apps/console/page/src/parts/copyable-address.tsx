/** A link to a subscription by its url, which the button beside it copies. */
import { Copyable } from './code.tsx';
import { PageLink } from './layout.tsx';

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
