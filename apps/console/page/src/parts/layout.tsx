/** What pages are made of: headings, sections, figures, facts, links and notes. */
import { Anchor, type AnchorProps, Box, Group, Paper, Stack, Text, type TextProps, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useEffect } from 'react';
import { Link } from 'react-router';
import { Breakable } from './breakable.tsx';
import { asLeft } from './list-search.ts';

/** Secondary text. */
export function Note({ size = 'sm', ...text }: TextProps & { 'aria-live'?: 'polite'; children: ReactNode }) {
  return <Text c="dimmed" size={size} {...text} />;
}

/** A link to another page. If it is truncated, set `title` to show the whole text on hover. */
export function PageLink(link: AnchorProps & { to: string; title?: string; children: ReactNode }) {
  return <Anchor component={Link} size="sm" {...(link.truncate && { display: 'block' })} {...link} />;
}

/** The link of a table's row. The whole row can be clicked, also to open it in another tab (page.css). */
export function RowLink(link: Omit<Parameters<typeof PageLink>[0], 'className'>) {
  return <PageLink {...link} className="row-link" />;
}

interface PageBodyProps {
  /** The title of the document, and the heading unless `heading` is set. */
  title: string;
  /** Shown smaller than a title, because it can be long. */
  heading?: string | undefined;
  /** Shown beside the heading. */
  badge?: ReactNode;
  back?: { to: string; label: string };
  actions?: ReactNode;
  children: ReactNode;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Posthorn`;
  }, [title]);
}

export function PageBody({ title, heading, badge, back, actions, children }: PageBodyProps) {
  useTitle(title);
  return (
    <Stack gap="lg">
      <Box>
        {back && (
          <PageLink to={asLeft(back.to)} c="dimmed" truncate w="fit-content" maw="100%">
            ← {back.label}
          </PageLink>
        )}
        <Group justify="space-between" gap="sm" mih={36}>
          <Group gap="sm" miw={0}>
            <Title order={1} size={heading === undefined ? 'h2' : 'h3'} style={{ overflowWrap: 'anywhere' }}>
              <Breakable text={heading ?? title} />
            </Title>
            {badge}
          </Group>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      </Box>
      {children}
    </Stack>
  );
}

interface SectionProps {
  title?: string | undefined;
  aside?: ReactNode;
  flush?: boolean;
  children: ReactNode;
}

/** A framed section. `flush` removes the padding, for example around a table. */
export function Section({ title, aside, flush = false, children }: SectionProps) {
  return (
    <Paper withBorder component="section" aria-label={title} style={{ overflow: 'hidden' }}>
      {title && (
        <Group justify="space-between" px="md" pt="sm" pb={flush ? 'xs' : 0} gap="xs">
          <Title order={2} size="h5">
            {title}
          </Title>
          {aside}
        </Group>
      )}
      <Box p={flush ? 0 : 'md'}>{children}</Box>
    </Paper>
  );
}

interface FigureProps {
  label: string;
  value: ReactNode;
  hint?: ReactNode;
}

export function Figure({ label, value, hint }: FigureProps) {
  return (
    <div className="numbers">
      <Note size="xs" fw={500}>
        {label}
      </Note>
      <Text component="div" fz={22} fw={650} lh={1.3}>
        {value}
      </Text>
      {hint && (
        <Text component="div" size="xs" c="dimmed">
          {hint}
        </Text>
      )}
    </div>
  );
}

/** A framed figure; with `to` it is a link. */
export function FigureCard({ to, ...figure }: FigureProps & { to?: string | undefined }) {
  const card = { withBorder: true, p: 'sm', children: <Figure {...figure} /> } as const;
  if (to === undefined) return <Paper {...card} />;
  return <Paper {...card} component={Link} to={to} c="inherit" td="none" />;
}

/** A list of names and values, without those that have no value (`null`, `false`). */
export function Facts({ facts }: { facts: Record<string, ReactNode> }) {
  return (
    <Box
      component="dl"
      m={0}
      style={{ display: 'grid', gap: '10px 24px', gridTemplateColumns: 'repeat(auto-fit, minmax(230px, 1fr))' }}
    >
      {Object.entries(facts)
        .filter(([, value]) => value !== null && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <Text component="dt" size="xs" c="dimmed" fw={500}>
              {name}
            </Text>
            <Text component="dd" m={0} size="sm" style={{ overflowWrap: 'anywhere' }}>
              {value}
            </Text>
          </div>
        ))}
    </Box>
  );
}
