/**
 * Builds the operators' page. `npx vite apps/console/page` serves it during development; it needs a console on its
 * usual port.
 */
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin, type Rolldown } from 'vite';

const consoleUrl = process.env.POSTHORN_URL ?? 'http://127.0.0.1:3001';
const toConsole = { target: consoleUrl, changeOrigin: false };

/** A module of Mantine that names the style classes of one component. */
const CLASS_NAMES = /@mantine[\\/]core[\\/]esm[\\/].*[\\/](\w+)\.module\.mjs$/;

/**
 * Loads the styles of a Mantine component together with its code: all styles at once would be a quarter of what is sent
 * before the first paint. During development the page loads all of them (see main.tsx).
 */
const stylesOfComponents: Plugin = {
  name: 'styles-of-components',
  apply: 'build',
  transform(code, id) {
    const component = CLASS_NAMES.exec(id)?.[1];
    if (component === undefined) return null;
    return { code: `import '@mantine/core/styles/${component}.css';\n${code}`, map: null };
  },
};

/**
 * What the first paint needs is one file, and what pages share another, without the time picker, which few pages need.
 * By default each set of pages has a file of what it shares, so a first visit loads over 50.
 */
const filesOfSharedCode = {
  groups: [
    { name: 'first', tags: ['$initial'], priority: 1 },
    { name: 'shared', minShareCount: 2, test: /^(?!.*(@mantine[\\/]dates|time-picker))/ },
  ],
} satisfies Rolldown.CodeSplittingOptions;

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), stylesOfComponents],
  server: { proxy: { '/v1': toConsole, '/queues': toConsole, '/docs': toConsole, '/openapi.json': toConsole } },
  build: { target: 'es2022', rolldownOptions: { output: { codeSplitting: filesOfSharedCode } } },
});
