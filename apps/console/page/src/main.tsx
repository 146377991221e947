/** Starts the operators' page. */
// The build adds the styles of each component that is used: see vite.config.ts.
import '@mantine/core/styles/baseline.css';
import '@mantine/core/styles/default-css-variables.css';
import '@mantine/core/styles/global.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router';
import { App } from './app.tsx';
import { lazyPart } from './lazy-part.ts';
import { queryClient } from './queries.ts';
import { preloadPage } from './routes.ts';
import { readable, theme } from './theme.ts';
// The last one, because it overrides.
import './page.css';

if (import.meta.env.DEV) await import('@mantine/core/styles.css');

/** Not needed before the first paint. */
const Overlays = lazyPart(async () => (await import('./parts/overlays.tsx')).Overlays);

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no element with the id root');
preloadPage(window.location.pathname);
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={readable} defaultColorScheme="auto">
      <QueryClientProvider client={queryClient}>
        <BrowserRouter>
          <App />
          <Suspense>
            <Overlays />
          </Suspense>
        </BrowserRouter>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
