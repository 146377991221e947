/** The pages and their paths. The code of a page is loaded when it is first opened. */
import { type ComponentType, lazy } from 'react';
import { matchPath } from 'react-router';

interface PageRoute {
  path: string;
  load: () => Promise<ComponentType>;
}

/** The pages of signed-in operators. More specific paths win, whatever the order. */
const pages: PageRoute[] = [
  { path: '/', load: async () => (await import('./pages/overview.tsx')).OverviewPage },
  { path: '/subscriptions', load: async () => (await import('./pages/subscriptions.tsx')).SubscriptionsPage },
  { path: '/subscriptions/new', load: async () => (await import('./pages/new-subscription.tsx')).NewSubscriptionPage },
  { path: '/subscriptions/:id', load: async () => (await import('./pages/subscription.tsx')).SubscriptionPage },
  {
    path: '/subscriptions/:id/signature',
    load: async () => (await import('./pages/signature-doctor.tsx')).SignatureDoctorPage,
  },
  { path: '/deliveries', load: async () => (await import('./pages/deliveries.tsx')).DeliveriesPage },
  { path: '/tail', load: async () => (await import('./pages/tail.tsx')).TailPage },
  { path: '/deliveries/:id', load: async () => (await import('./pages/delivery.tsx')).DeliveryPage },
  { path: '/events/:id', load: async () => (await import('./pages/event.tsx')).EventPage },
  { path: '/replays', load: async () => (await import('./pages/replays.tsx')).ReplaysPage },
  { path: '/replays/:id', load: async () => (await import('./pages/replay.tsx')).ReplayPage },
  { path: '/erasures', load: async () => (await import('./pages/erasures.tsx')).ErasuresPage },
  { path: '/erasures/:id', load: async () => (await import('./pages/erasure.tsx')).ErasurePage },
  { path: '/search', load: async () => (await import('./pages/search.tsx')).SearchPage },
  { path: '/audit', load: async () => (await import('./pages/audit.tsx')).AuditPage },
];

const signIn: PageRoute = { path: '/sign-in', load: async () => (await import('./pages/sign-in.tsx')).SignInPage };

const lazyPage = ({ load }: PageRoute) => lazy(async () => ({ default: await load() }));

export const SIGN_IN = signIn.path;
export const SignInPage = lazyPage(signIn);

/** The routes with components that load their code when they are first rendered. */
export const routes = pages.map((page) => ({ path: page.path, Page: lazyPage(page) }));

/** Starts to load the page of a path, so that its code arrives together with the session and not after it. */
export function preloadPage(pathname: string): void {
  const page = [...pages, signIn].find(({ path }) => matchPath(path, pathname));
  // If this fails, rendering the page tries again and shows the error.
  page?.load().catch(() => undefined);
}
