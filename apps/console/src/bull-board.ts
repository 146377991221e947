/** Bull Board for operators, to look only: its buttons would break the schedule, so nothing but reading gets through. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { AppError } from '@posthorn/core';
import type { Producer } from '@posthorn/queue';
import { type RequestHandler, Router } from 'express';

const BULL_BOARD_PATH = '/queues';

/** The board of all partitions' queues, behind `guard`. */
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
  next(reads ? undefined : new AppError('method_not_allowed', 'Bull Board is for looking only; use the operator API.'));
};
