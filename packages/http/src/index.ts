/** What makes an HTTP API: routes that document themselves, authentication, bodies, problem documents, limits. */
export { type Api, createApi, problemSchema } from './api.ts';
export { bearerOf, callerName, createKeyring, principalOf, requireBearer, setPrincipal } from './auth.ts';
export { type AuthFailures, createAuthFailures } from './auth-failures.ts';
export { createBudget } from './budget.ts';
export { docsRouter } from './docs-page.ts';
export { ipNetwork } from './ip-network.ts';
export {
  fieldErrors,
  parseFields,
  problemDocument,
  requireStorage,
  storageUnavailable,
  toAppError,
} from './problems.ts';
export { limitCalls, limitPerSecond, type RateLimit } from './rate-limit.ts';
export { type ApiService, serveApi } from './serve-api.ts';
export { asyncApi, jsonSchemaOf, webhooks } from './wire-documents.ts';
