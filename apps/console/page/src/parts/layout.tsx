/** The pieces that every page is laid out with. */
import { Anchor, Box, Group, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useEffect } from 'react';
import { Link } from 'react-router';

/** A page: its title, also in the browser's tab, what can be done on it, and its content. */
export function PageBody({
  title,
  heading,
  back,
  actions,
  children,
}: {
  title: string;
  /** In place of the title, where that is more than text. */
  heading?: ReactNode;
  back?: { to: string; label: string };
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Posthorn`;
  }, [title]);
  return (
    <Stack gap="lg">
      <Box>
        {back && (
          <Anchor component={Link} to={back.to} size="sm" c="dimmed">
            ← {back.label}
          </Anchor>
        )}
        <Group justify="space-between" align="center" gap="sm" mih={36}>
          {heading ?? (
            <Title order={1} size="h2">
              {title}
            </Title>
          )}
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      </Box>
      {children}
    </Stack>
  );
}

/** A framed part of a page. `flush` for what reaches the frame, like a table. */
export function Section({
  title,
  aside,
  flush = false,
  children,
}: {
  title?: string;
  aside?: ReactNode;
  flush?: boolean;
  children: ReactNode;
}) {
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

/** One figure with its name. */
export function Figure({ label, value, hint }: { label: string; value: ReactNode; hint?: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed" fw={500}>
        {label}
      </Text>
      <Text component="div" fz={22} fw={650} lh={1.3} className="numbers">
        {value}
      </Text>
      {hint && (
        <Text component="div" size="xs" c="dimmed" className="numbers">
          {hint}
        </Text>
      )}
    </div>
  );
}

/** The same in a frame of its own; with `to` it leads on. */
export function FigureCard({ to, ...figure }: { to?: string } & Parameters<typeof Figure>[0]) {
  if (to === undefined) {
    return (
      <Paper withBorder p="sm">
        <Figure {...figure} />
      </Paper>
    );
  }
  return (
    <Paper withBorder p="sm" component={Link} to={to} c="inherit" td="none">
      <Figure {...figure} />
    </Paper>
  );
}

/** Names and values, one pair a row; the name above the value where there is little room. */
export function Facts({ facts }: { facts: Record<string, ReactNode> }) {
  return (
    <Box
      component="dl"
      m={0}
      style={{ display: 'grid', gap: '10px 24px', gridTemplateColumns: 'repeat(auto-fit, minmax(230px, 1fr))' }}
    >
      {Object.entries(facts).map(([name, value]) => (
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
