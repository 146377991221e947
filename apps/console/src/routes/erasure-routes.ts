/** Routes for erasures. Maintenance in the workers finds and erases the events. */
import { AppError, ERASURE_FIELDS, type ErasureField, type ErasureStatus } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import {
  cancelErasure,
  cancelRunningErasure,
  confirmErasure,
  listErasures,
  loadErasures,
  MAX_OPEN_ERASURES,
  type Store,
  startErasure,
} from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { missing } from '../missing.ts';
import { serializeErasure, serializePage } from '../serialize.ts';

export function erasureRoutes(api: Api, context: ConsoleContext): void {
  startRoute(api, context);
  readRoutes(api, context);
  decisionRoutes(api, context);
}

/** The common part of the routes of one erasure. */
const ofErasure = {
  params: schemas.erasureParamsSchema,
  responses: { 200: { description: 'The erasure', schema: schemas.erasureSchema } },
};

async function findErasure(store: Store, id: string) {
  const [erasure = missing('erasure')] = await loadErasures(store, [id]);
  return erasure;
}

/** The one value that was given. */
function givenValue(
  given: { [field in ErasureField]?: string | undefined },
): { field: ErasureField; value: string } | undefined {
  for (const field of ERASURE_FIELDS) {
    const value = given[field];
    if (value !== undefined) return { field, value };
  }
  return undefined;
}

/** What the hash of a value is made of: the same value of another field has another one. */
const hashed = ({ field, value }: { field: ErasureField; value: string }) => `${field}\n${value}`;

function startRoute(api: Api, context: ConsoleContext): void {
  const { store, secretBox, fingerprints, clock, logger } = context;
  api.tagged('Erasures').post('/v1/erasures', {
    summary: 'Erase the payloads of an event, a session, a reference or a user',
    description:
      'Takes exactly one of `event_id`, `session_id`, `reference` and `user_id`, and compares whole values. Without `confirm`, it counts what it would erase and then waits for a confirmation, for an hour. It works in the background. Deliveries and event ids stay known; the payload, the entries of the search index and what came back from attempts do not.',
    body: schemas.newErasureSchema,
    responses: { 202: { description: 'The erasure', schema: schemas.erasureSchema } },
    problems: ['conflict'],
    async handle({ body, caller }) {
      const wanted = givenValue(body);
      if (!wanted) throw new Error('The schema requires a value');
      const { environment, unsent, confirm: isConfirmed } = body;
      const seal = (id: string) => secretBox.seal(wanted.value, id);
      const request = { field: wanted.field, environment, unsent, isConfirmed, seal };
      const valueHmac = fingerprints.of(hashed(wanted));
      const erasure = await startErasure(store, { ...request, valueHmac }, clock.now(), caller);
      if (!erasure)
        throw new AppError(
          'conflict',
          `${MAX_OPEN_ERASURES} erasures have not ended. Confirm or cancel those that are counted; wait for those that are running; confirm those that are waiting with \`unsent: end\`.`,
        );
      const line = { erasure_id: erasure.id, status: erasure.status, field: erasure.field, value_hmac: valueHmac };
      logger.info({ ...line, operator: caller }, 'erasure.requested');
      return serializeErasure(context, erasure);
    },
  });
}

function readRoutes(api: Api, context: ConsoleContext): void {
  const { store, fingerprints } = context;
  const erasures = api.tagged('Erasures');

  erasures.get('/v1/erasures', {
    summary: 'List erasures, newest first',
    description:
      'With a value, lists the erasures of that value: the proof that it was erased, as long as the key that made the hash is in SECRET_ENCRYPTION_KEY.',
    query: schemas.erasuresQuerySchema,
    responses: { 200: { description: 'A page of erasures', schema: schemas.listOf(schemas.erasureSchema) } },
    async handle({ query: { limit, cursor, event_id, session_id, reference, user_id, ...unused } }) {
      unused satisfies Record<string, never>;
      const wanted = givenValue({ event_id, session_id, reference, user_id });
      const hmacs = wanted && fingerprints.all(hashed(wanted));
      const page = await listErasures(store, hmacs, { limit, cursor, leaveOutUnreadable: true });
      return await serializePage(context, page, (erasure) => serializeErasure(context, erasure));
    },
  });

  erasures.get('/v1/erasures/{id}', {
    ...ofErasure,
    summary: 'Read one with its progress',
    async handle({ params: { id } }) {
      return serializeErasure(context, await findErasure(store, id));
    },
  });
}

/** Why an erasure in this status can be neither confirmed nor cancelled. */
const over: Record<ErasureStatus, string> = {
  counting: 'It was changed at the same time. Try again.',
  counted: 'It was changed at the same time. Try again.',
  running: 'It is confirmed already.',
  waiting: 'It is confirmed already. To end the deliveries that it waits for, confirm it with `unsent: end`.',
  done: 'It is done.',
  cancelled:
    'It is cancelled: by an operator, or since nobody confirmed it within an hour of its count, or it could not be counted within a day.',
};

function decisionRoutes(api: Api, context: ConsoleContext): void {
  const { store, secretBox, clock, logger } = context;
  const erasures = api.tagged('Erasures');

  erasures.post('/v1/erasures/{id}/confirm', {
    ...ofErasure,
    summary: 'Confirm it: the events are erased',
    description:
      'It cannot be undone. Events that are accepted up to this moment are erased too. One that waits, for deliveries or for an event that can not be read (`unreadable`), may be confirmed once more with `unsent: end`, which ends the deliveries.',
    body: schemas.erasureConfirmationSchema,
    optionalBody: true,
    problems: ['conflict'],
    async handle({ params: { id }, body: { unsent }, caller }) {
      const erasure = await findErasure(store, id);
      const result = await confirmErasure(store, erasure, unsent ?? erasure.unsent, clock.now(), caller);
      if (result === 'gone') missing('erasure');
      if (result !== 'advanced') throw new AppError('conflict', over[result]);
      // One that waits goes on waiting, until its deliveries have been ended.
      const status = erasure.status === 'waiting' ? 'waiting' : 'running';
      const line = { erasure_id: id, status, field: erasure.field, value_hmac: erasure.valueHmac };
      logger.info({ ...line, operator: caller }, 'erasure.confirmed');
      return serializeErasure(context, await findErasure(store, id));
    },
  });

  erasures.post('/v1/erasures/{id}/cancel', {
    ...ofErasure,
    summary: 'Cancel one that is not confirmed',
    description:
      'One that is running can be cancelled only if no key in SECRET_ENCRYPTION_KEY opens its value: then `value` is null, and it can never end. It erases nothing more, and has the status `cancelled` some seconds later.',
    problems: ['conflict'],
    async handle({ params: { id }, caller }) {
      const erasure = await findErasure(store, id);
      const { sealedValue } = erasure;
      const canEnd = sealedValue === undefined || secretBox.opens(sealedValue, id);
      const result =
        erasure.status === 'running' && !canEnd
          ? await cancelRunningErasure(store, erasure, clock.now(), caller)
          : await cancelErasure(store, erasure, clock.now());
      if (result === 'gone') missing('erasure');
      if (result !== 'advanced') throw new AppError('conflict', over[result]);
      logger.info({ erasure_id: id, operator: caller }, 'erasure.cancelled');
      return serializeErasure(context, await findErasure(store, id));
    },
  });
}
