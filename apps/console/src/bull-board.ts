/**
 * Serves Bull Board to operators, read-only (its buttons would break the schedule of deliveries) and from this server
 * alone.
 */
import { AppError, isDecodable } from '@posthorn/core';
import { parseFields } from '@posthorn/http';
import type { JobQueues } from '@posthorn/queue';
import { shareResult } from '@posthorn/runtime';
import { type Express, type RequestHandler, Router } from 'express';
import { z } from 'zod';

const BULL_BOARD_PATH = '/queues';

const FONTS = { 'font-sans': 'system-ui, sans-serif', 'font-mono': 'ui-monospace, monospace' };

const UI_CONFIG = {
  boardTitle: 'Posthorn',
  boardLogo: { path: '/posthorn.svg', width: 28, height: 28 },
  favIcon: { default: '/posthorn.svg', alternative: '/posthorn.svg' },
  hideDocsLink: true,
  // It looks for BullMQ's workers, and would always say "No workers". The overview shows those of Posthorn.
  showWorkers: false,
  theme: { light: FONTS, dark: FONTS },
};

/** Bull Board, which is loaded when somebody first looks at it. */
async function loadBoard(jobQueues: JobQueues): Promise<RequestHandler> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/express'),
  ]);
  const board = new ExpressAdapter();
  board.setBasePath(BULL_BOARD_PATH);
  const several = jobQueues.all.length > 1;
  createBullBoard({
    queues: jobQueues.all.map(
      (queue, partition) =>
        new BullMQAdapter(queue, { readOnlyMode: true, ...(several ? { prefix: `partition ${partition} ` } : {}) }),
    ),
    serverAdapter: board,
    options: { uiConfig: UI_CONFIG },
  });
  // To the console's own handlers, which respond with a problem document and log it.
  board.setErrorHandler((error) => {
    throw error;
  });
  const router: Express = board.getRouter();
  router.disable('x-powered-by');
  return router;
}

/**
 * Returns a router with the queues of all partitions, behind `guard`. Calls of Bull Board's API are behind `limit` too.
 */
export function bullBoardRoutes(jobQueues: JobQueues, guard: RequestHandler, limit: RequestHandler): Router {
  const board = shareResult(() => loadBoard(jobQueues), Number.POSITIVE_INFINITY);
  const router = Router();
  router.use(BULL_BOARD_PATH, guard, readOnly);
  router.use(`${BULL_BOARD_PATH}/api`, limit, checkQuery);
  router.use(BULL_BOARD_PATH, adaptPage, async (request, response, next) => {
    (await board())(request, response, next);
  });
  return router;
}

/** The element with which Bull Board's page loads its fonts from another server. */
const FOREIGN_STYLES = /<link [^>]*href="https?:[^>]*>/g;

/**
 * A link above Bull Board, which has no place for one in sight. It has its own background, because Bull Board has two
 * color schemes.
 */
const BACK_LINK =
  '<a href="/" style="position:fixed;top:16px;left:50%;transform:translateX(-50%);z-index:1000;padding:6px 12px;border-radius:8px;background:#3b4fd8;color:#fff;font:14px system-ui,sans-serif;text-decoration:none">← Back to the console</a>';

/**
 * Removes from Bull Board's page what it would load from elsewhere, because no other server should learn who opens the
 * console, and adds the link back.
 */
const adaptPage: RequestHandler = (_request, response, next) => {
  const send = response.send.bind(response);
  const adapted = (page: string) => page.replaceAll(FOREIGN_STYLES, '').replace('<div id="root">', `${BACK_LINK}$&`);
  response.send = (body) => send(typeof body === 'string' ? adapted(body) : body);
  next();
};

const readOnly: RequestHandler = (request, _response, next) => {
  const reads = request.method === 'GET' || request.method === 'HEAD';
  next(reads ? undefined : new AppError('method_not_allowed', 'Bull Board is read-only; use the operator API.'));
};

/**
 * Bull Board reads as many jobs as it is asked for, and answers 500 to a name that it can't decode and to a page that
 * Redis can't count.
 */
const boardQuery = z.object({
  jobsPerPage: z.coerce.number().max(100).optional(),
  page: z.coerce.number().max(1_000_000).optional(),
  activeQueue: z.string().refine(isDecodable, 'Percent-encode the name').optional(),
});

const checkQuery: RequestHandler = (request, _response, next) => {
  parseFields(boardQuery, request.query, 'The query');
  next();
};
