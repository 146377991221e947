/** Builds the operators' page. `npx vite apps/console/page` serves it during development; it needs a console on its usual port. */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const consoleUrl = process.env.POSTHORN_URL ?? 'http://127.0.0.1:3001';
const toConsole = { target: consoleUrl, changeOrigin: false };

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  server: { proxy: { '/v1': toConsole, '/queues': toConsole, '/docs': toConsole, '/openapi.json': toConsole } },
  build: {
    target: 'es2022',
  },
});
