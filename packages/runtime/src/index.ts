/** What every app is run with. */
export { type Api, createApi } from './api.ts';
export { bearerOf, createKeyring, type Holder, holderOf, keepHolder, requireBearer } from './auth.ts';
export { type AuthFailures, createAuthFailures } from './auth-failures.ts';
export { createBudget } from './budget.ts';
export { type Clock, systemClock } from './clock.ts';
export { docsRouter } from './docs-page.ts';
export { createExpress, createHttpService, type HttpService } from './http-service.ts';
export { type Admission, jsonBody } from './json-body.ts';
export { createLogger, type Logger } from './logger.ts';
export { type Backlog, createMetrics, registerBacklog } from './operations.ts';
export { connectionLimits, serveOperations, together } from './operations-server.ts';
export {
  fieldErrors,
  isStorageFailure,
  notFoundHandler,
  parseFields,
  problemDocument,
  problemHandler,
  requireStorage,
  toAppError,
} from './problems.ts';
export { limitCalls, limitPerSecond, type RateLimit } from './rate-limit.ts';
export { createRepeating } from './repeating.ts';
export { type App, runApp, type Service, stopServices } from './service.ts';
export {
  durationListMs,
  durationMs,
  loadSettings,
  operatorTokens,
  parsedBy,
  publisherKeys,
  SettingsError,
  sharedSettings,
  version,
  wholeNumber,
} from './settings.ts';
