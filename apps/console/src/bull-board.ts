/** Serves Bull Board to operators, read-only: its buttons would break the schedule of deliveries. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { AppError } from '@posthorn/core';
import type { Producer } from '@posthorn/queue';
import { type RequestHandler, Router } from 'express';

const BULL_BOARD_PATH = '/queues';

/** Returns a router with the queues of all partitions, behind `guard`. */
export function bullBoardRoutes(producer: Producer, guard: RequestHandler): Router {
  const board = new ExpressAdapter();
  board.setBasePath(BULL_BOARD_PATH);
  const several = producer.queues.length > 1;
  createBullBoard({
    queues: producer.queues.map(
      (queue, partition) =>
        new BullMQAdapter(queue, { readOnlyMode: true, ...(several ? { prefix: `partition ${partition} ` } : {}) }),
    ),
    serverAdapter: board,
    options: { uiConfig: { boardTitle: 'Posthorn' } },
  });
  const router = Router();
  router.use(BULL_BOARD_PATH, guard, readOnly, board.getRouter());
  return router;
}

const readOnly: RequestHandler = (request, _response, next) => {
  const reads = request.method === 'GET' || request.method === 'HEAD';
  next(reads ? undefined : new AppError('method_not_allowed', 'Bull Board is read-only; use the operator API.'));
};
