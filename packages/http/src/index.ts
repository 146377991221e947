/** What makes an HTTP API: routes that document themselves, authentication, bodies, problem documents, limits. */
export { type Api, createApi } from './api.ts';
export { bearerOf, createKeyring, type Holder, holderOf, keepHolder, requireBearer } from './auth.ts';
export { type AuthFailures, createAuthFailures } from './auth-failures.ts';
export { createBudget } from './budget.ts';
export { docsRouter } from './docs-page.ts';
export { createExpress, createHttpService, type HttpService } from './http-service.ts';
export { type Admission, jsonBody } from './json-body.ts';
export { connectionLimits, serveOperations, together } from './operations-server.ts';
export {
  fieldErrors,
  notFoundHandler,
  parseFields,
  problemDocument,
  problemHandler,
  requireStorage,
  toAppError,
} from './problems.ts';
export { limitCalls, limitPerSecond, type RateLimit } from './rate-limit.ts';
