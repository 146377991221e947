/** Serves the operators' page: its files, and the page itself for every path that a browser may open. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDecodable } from '@posthorn/core';
import { type RequestHandler, Router } from 'express';
import expressStaticGzip from 'express-static-gzip';

const DIRECTORY = join(import.meta.dirname, '../page/dist');
const NOT_BUILT =
  'The page is not built. Run "npm run build" and start the console again; the API and /queues work without it.\n';

/** Returns a router for the page that is built in `root`. It must come after all other routes. */
export function pageRoutes(root = DIRECTORY): Router {
  const router = Router();
  // The names of these files contain a hash of their content.
  router.use('/assets', files(join(root, 'assets'), { immutable: true, maxAge: '1y' }));
  router.use(files(root, { maxAge: '1h' }));
  const index = 'index.html';
  router.use((request, response, next) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    // Whoever takes anything, as curl and probes do, gets the page at its address, and a problem document elsewhere.
    const wantsPage = isRead && request.accepts(request.path === '/' ? ['html', 'json'] : ['json', 'html']) === 'html';
    if (!wantsPage || /^\/(v1|assets)(\/|$)/.test(request.path)) next();
    // With `root`, or it would not be found where the name of a folder above begins with a dot.
    else if (existsSync(join(root, index))) response.set('Cache-Control', 'no-cache').sendFile(index, { root });
    else response.status(503).type('text').send(NOT_BUILT);
  });
  return router;
}

/**
 * Serves a folder, from the compressed files that the build has put beside the others. Without a build there are none.
 */
function files(folder: string, caching: { immutable?: boolean; maxAge: string }): RequestHandler {
  const serve = expressStaticGzip(folder, {
    enableBrotli: true,
    orderPreference: ['br', 'gzip'],
    index: false,
    serveStatic: { ...caching, index: false },
  });
  // A path with an invalid % belongs to no file. `serve` would refuse it with an error text of its own.
  return (request, response, next) => (isDecodable(request.path) ? serve(request, response, next) : next());
}
