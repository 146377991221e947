/** Serves the operators' page: its files, and the page itself for every path that a browser may open. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import express, { Router } from 'express';

const DIRECTORY = join(import.meta.dirname, '../page/dist');
const NOT_BUILT =
  'The page is not built. Run "npm run build" and start the console again; the API and /queues work without it.\n';

/** Returns a router for the page. It must come after all other routes. */
export function pageRoutes(): Router {
  const router = Router();
  // The names of these files contain a hash of their content.
  router.use('/assets', express.static(join(DIRECTORY, 'assets'), { immutable: true, maxAge: '1y', index: false }));
  router.use(express.static(DIRECTORY, { index: false, maxAge: '1h' }));
  const index = join(DIRECTORY, 'index.html');
  router.use((request, response, next) => {
    const wantsPage = request.method === 'GET' && request.accepts(['json', 'html']) === 'html';
    if (!wantsPage || /^\/(v1|assets)(\/|$)/.test(request.path)) next();
    else if (existsSync(index)) response.set('Cache-Control', 'no-cache').sendFile(index);
    else response.status(503).type('text').send(NOT_BUILT);
  });
  return router;
}
