/** Layout components. */
import { Anchor, Box, Group, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useEffect } from 'react';
import { Link } from 'react-router';

/** A page with title (also the document title), actions and content. */
export function PageBody({
  title,
  heading,
  back,
  actions,
  children,
}: {
  title: string;
  /** Shown instead of the title. */
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

/** A framed section. `flush` removes the padding, for example around a table. */
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

/** A figure with its label. */
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

/** A framed figure; with `to` it is a link. */
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

/** A list of names and values. On narrow screens each name is above its value. */
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
