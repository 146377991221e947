/** Routes for signing in and out: a browser gets a cookie instead of storing a token (interface 4). */
import type { Api } from '@posthorn/http';
import { sessionSchema, signInSchema } from '@posthorn/operator-api';
import { appendAudit } from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';

export function sessionRoutes(api: Api, { store, operators, clock }: ConsoleContext): void {
  const session = api.tagged('Session');

  session.post('/v1/session', {
    summary: 'Sign in',
    description:
      'Sets an HttpOnly, SameSite=Strict cookie. After 10 wrong tokens within 15 minutes, a client gets 429.',
    open: true,
    body: signInSchema,
    responses: { 201: { description: 'The session', schema: sessionSchema } },
    problems: ['unauthorized', 'too_many_requests', 'unavailable'],
    async handle({ body: { token }, request, response }) {
      const signedIn = await operators.signIn(request, token);
      try {
        await appendAudit(store, { operator: signedIn.operator, action: 'session.started' }, clock.now());
      } catch (error) {
        // No session without an entry in the audit trail.
        await operators.signOut(request, response);
        throw error;
      }
      return signedIn;
    },
  });

  session.get('/v1/session', {
    summary: 'Read the session',
    responses: { 200: { description: 'The session, or the operator of the token', schema: sessionSchema } },
    async handle({ request, caller }) {
      const bearer = { operator: caller, operators: operators.names, csrf_token: null, expires_at: null };
      return operators.signedIn(request) ?? bearer;
    },
  });

  session.delete('/v1/session', {
    summary: 'Sign out',
    responses: { 204: { description: 'The session was deleted' } },
    async handle({ request, response, caller }) {
      if (!operators.signedIn(request)) return;
      await operators.signOut(request, response);
      await appendAudit(store, { operator: caller, action: 'session.ended' }, clock.now());
    },
  });
}
