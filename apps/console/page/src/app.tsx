/** The frame of the page: navigation, search, color scheme, signed-in operator. */
import {
  ActionIcon,
  Box,
  Burger,
  Group,
  Text,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import {
  CircleSlashIcon,
  CodeIcon,
  HistoryIcon,
  IterationsIcon,
  MeterIcon,
  MoonIcon,
  PaperAirplaneIcon,
  PulseIcon,
  StackIcon,
  SunIcon,
  WebhookIcon,
} from '@primer/octicons-react';
import { Suspense, useEffect, useRef } from 'react';
import { createRoutesFromElements, Link, Outlet, Route, useLocation, useRoutes } from 'react-router';
import { lazyPart } from './lazy-part.ts';
import { NotFoundPage } from './pages/not-found.tsx';
import { focusContent } from './parts/kept-focus.ts';
import { PageBoundary } from './parts/page-boundary.tsx';
import { SearchBox } from './parts/search-box.tsx';
import { UtcProvider } from './parts/utc.tsx';
import { routes, SIGN_IN, SignInPage } from './routes.ts';
import { RequireSession } from './session.tsx';

const sections = [
  { to: '/', label: 'Overview', icon: MeterIcon },
  { to: '/subscriptions', label: 'Subscriptions', icon: WebhookIcon },
  { to: '/deliveries', label: 'Deliveries', icon: PaperAirplaneIcon },
  { to: '/tail', label: 'Live', icon: PulseIcon },
  { to: '/replays', label: 'Bulk replays', icon: IterationsIcon },
  { to: '/erasures', label: 'Erasures', icon: CircleSlashIcon },
  { to: '/audit', label: 'Audit', icon: HistoryIcon },
] as const;
/** Other pages of the console, for the same session. */
const elsewhere = [
  { href: '/queues', label: 'Queues', icon: StackIcon },
  { href: '/docs', label: 'API', icon: CodeIcon },
] as const;

const Freshness = lazyPart(async () => (await import('./parts/freshness.tsx')).Freshness);
const OperatorMenu = lazyPart(async () => (await import('./parts/operator-menu.tsx')).OperatorMenu);

const tree = createRoutesFromElements(
  <>
    <Route
      path={SIGN_IN}
      element={
        <PageBoundary path={SIGN_IN}>
          <SignInPage />
        </PageBoundary>
      }
    />
    <Route
      element={
        <RequireSession>
          <UtcProvider>
            <Frame />
          </UtcProvider>
        </RequireSession>
      }
    >
      {routes.map(({ path, Page }) => (
        <Route key={path} path={path} element={<Page />} />
      ))}
      <Route path="*" element={<NotFoundPage />} />
    </Route>
  </>,
);

export function App() {
  const nothing = useRoutes(tree, '/nothing/here');
  // A path with a line break matches no route, not even `*`.
  return useRoutes(tree) ?? nothing;
}

/** The `/` and Ctrl-K keys go to the search field, unless a dialog covers it. */
function focusSearch(): void {
  if (!document.querySelector('[aria-modal]')) document.querySelector<HTMLInputElement>('search input')?.focus();
}

function Frame() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useEffect(() => {
    // The link that had the focus may be gone with its page.
    if (shown.current !== pathname) focusContent();
    shown.current = pathname;
  }, [pathname]);
  useHotkeys([['/', focusSearch]]);
  // Also while another field has the focus.
  useHotkeys([['mod+K', focusSearch]], []);
  // The page of an event has no link of its own: it is reached from its deliveries.
  const section = pathname.startsWith('/events/') ? '/deliveries' : pathname;
  const isActive = (to: string) => (to === '/' ? section === '/' : section.startsWith(to));
  const navLink = (label: string, Icon: (typeof sections)[number]['icon']) => (
    <>
      <Icon size={16} />
      {label}
    </>
  );
  return (
    <>
      <a href="#content" className="skip-link">
        Skip to the content
      </a>
      <header className="frame-header">
        <Group h="100%" px="md" gap="sm" wrap="nowrap" justify="space-between">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label="Menu"
              aria-expanded={opened}
            />
            <UnstyledButton component={Link} to="/" aria-label="Posthorn, overview">
              <Group gap={8} wrap="nowrap">
                <img src="/posthorn.svg" width={26} height={26} alt="" />
                <Text fw={650} visibleFrom="xs">
                  Posthorn
                </Text>
              </Group>
            </UnstyledButton>
          </Group>
          <Box flex={1} maw={440}>
            <SearchBox />
          </Box>
          <Group gap={4} wrap="nowrap">
            <ColorSchemeButton />
            <Suspense>
              <OperatorMenu />
            </Suspense>
          </Group>
        </Group>
      </header>
      <nav className="frame-nav" aria-label="Sections" data-opened={opened}>
        {sections.map(({ to, label, icon }) => (
          <Link key={to} to={to} className="nav-link" aria-current={isActive(to) ? 'page' : undefined} onClick={close}>
            {navLink(label, icon)}
          </Link>
        ))}
        <Box mt="auto">
          {elsewhere.map(({ href, label, icon }) => (
            <a key={href} href={href} className="nav-link">
              {navLink(label, icon)}
            </a>
          ))}
        </Box>
      </nav>
      <main className="frame-main" id="content" tabIndex={-1}>
        <Box maw={1180} mx="auto">
          <PageBoundary path={pathname}>
            <Outlet />
          </PageBoundary>
          <Suspense>
            <Freshness />
          </Suspense>
        </Box>
      </main>
    </>
  );
}

function ColorSchemeButton() {
  const { toggleColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme('light') === 'dark';
  const label = isDark ? 'Light colors' : 'Dark colors';
  return (
    <ActionIcon variant="subtle" color="gray" size="lg" aria-label={label} title={label} onClick={toggleColorScheme}>
      {isDark ? <SunIcon size={18} /> : <MoonIcon size={18} />}
    </ActionIcon>
  );
}
