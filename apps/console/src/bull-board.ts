/** Bull Board for operators, to look only: its buttons would break the schedule, so nothing but reading gets through. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { AppError } from '@posthorn/core';
import type { Producer } from '@posthorn/queue';
import { createKeyring } from '@posthorn/runtime';
import { type RequestHandler, Router } from 'express';

const BULL_BOARD_PATH = '/queues';

/** The board of all partitions' queues, behind the operators' tokens: as a bearer, or as the password that a browser asks for. */
export function bullBoardRoutes(producer: Producer, operators: readonly { name: string; key: string }[]): Router {
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
  router.use(BULL_BOARD_PATH, requireOperator(operators), readOnly, board.getRouter());
  return router;
}

function requireOperator(operators: readonly { name: string; key: string }[]): RequestHandler {
  const find = createKeyring(operators);
  return (request, response, next) => {
    const [, scheme, credentials = ''] = /^(Bearer|Basic) +(\S+) *$/i.exec(request.headers.authorization ?? '') ?? [];
    const isBasic = scheme?.toLowerCase() === 'basic';
    const token = isBasic
      ? Buffer.from(credentials, 'base64')
          .toString()
          .replace(/^[^:]*:/, '')
      : credentials;
    if (token !== '' && find(token)) {
      next();
      return;
    }
    response.set('WWW-Authenticate', 'Basic realm="Posthorn: any name, and an operator token as the password"');
    next(new AppError('unauthorized', 'Send an operator token.'));
  };
}

const readOnly: RequestHandler = (request, _response, next) => {
  const reads = request.method === 'GET' || request.method === 'HEAD';
  next(reads ? undefined : new AppError('method_not_allowed', 'Bull Board is for looking only; use the operator API.'));
};
