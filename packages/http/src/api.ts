/** Routes declared once: what is declared here checks the request, serves the route and writes its part of the OpenAPI document. */
import { AppError, errorCodes } from '@posthorn/core';
import { type NextFunction, type Request, type RequestHandler, type Response, Router } from 'express';
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { callerName } from './auth.ts';
import { createBudget } from './budget.ts';
import { type Admission, jsonBody } from './json-body.ts';
import { parseFields } from './problems.ts';

type Method = 'get' | 'post' | 'patch' | 'delete';
type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** What a route takes and answers. */
export interface RouteSpec<
  P extends z.ZodObject | undefined,
  Q extends z.ZodObject | undefined,
  B extends z.ZodType | undefined,
> {
  method: Method;
  /** With parameters in braces, as OpenAPI writes them: `/v1/events/{id}`. */
  path: string;
  /** What it does, in a line. */
  summary: string;
  description?: string;
  tag: string;
  /** A path parameter of another form names nothing: 404. */
  params?: P;
  query?: Q;
  body?: B;
  /** No body at all counts as `{}`. */
  optionalBody?: boolean;
  /** The handler checks the body itself, with the same schema: it needs what came, not what a schema makes of it. */
  checksBody?: boolean;
  /** Largest body in bytes. */
  limitBytes?: number;
  /** What a call uses up as its body arrives, besides the memory for bodies. */
  admission?: Admission;
  /** What it answers when all goes well, by status. */
  answers: Record<number, { description: string; schema?: z.ZodType; type?: string }>;
  /** Statuses of the problems it may answer besides those that every route may. */
  problems?: readonly number[];
  /** Needs no key. */
  open?: boolean;
}

export interface RouteInput<P, Q, B> {
  params: Parsed<P>;
  query: Parsed<Q>;
  /** The body as the schema reads it; with `checksBody`, as it came. */
  body: Parsed<B>;
  /** The name of whoever calls; '' on an open route. */
  caller: string;
  request: Request;
  response: Response;
}

export interface RouteAnswer {
  status: number;
  /** JSON, or nothing. */
  body?: unknown;
}

export type Api = ReturnType<typeof createApi>;

/** Bodies in memory at once, over all calls with a known caller. What is parsed from them takes several times as much. */
const MAX_BODIES_BYTES = 32 * 1024 * 1024;
/** Bodies of most routes are a few fields. */
const MAX_BODY_BYTES = 64 * 1024;
/**
 * The body of an open route, which anybody may send. It counts against no shared budget, so there is none that strangers could use up:
 * the number of connections bounds what they all hold, one body each.
 */
const MAX_OPEN_BODY_BYTES = 4 * 1024;

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(Object.keys(errorCodes) as [string, ...string[]]),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details; `errors` names each bad field' });

/** A router whose routes document themselves. */
export function createApi(options: {
  title: string;
  version: string;
  description: string;
  /** How callers identify themselves, as OpenAPI's security schemes. */
  security: Record<
    string,
    { type: 'http' | 'apiKey'; scheme?: string; in?: 'cookie'; name?: string; description: string }
  >;
  /** What a call to a route that is not open passes before anything else. */
  guards?: RequestHandler[];
}) {
  const router = Router();
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  const bodies: Admission = { budget: createBudget(MAX_BODIES_BYTES), weigh: (bytes) => bytes };
  const security = Object.keys(options.security).map((name) => ({ [name]: [] }));

  return {
    router,

    /** Serves and documents a route. */
    route<
      P extends z.ZodObject | undefined = undefined,
      Q extends z.ZodObject | undefined = undefined,
      B extends z.ZodType | undefined = undefined,
    >(spec: RouteSpec<P, Q, B>, handle: (input: RouteInput<P, Q, B>) => Promise<RouteAnswer>): void {
      const steps: RequestHandler[] = spec.open ? [] : [...(options.guards ?? [])];
      if (spec.body) {
        const { limitBytes = spec.open ? MAX_OPEN_BODY_BYTES : MAX_BODY_BYTES, optionalBody: optional = false } = spec;
        const admissions = spec.open ? [] : [bodies, ...(spec.admission ? [spec.admission] : [])];
        steps.push(jsonBody({ limitBytes, optional, admissions }));
      }
      steps.push(async (request: Request, response: Response, _next: NextFunction) => {
        const answer = await handle({ ...parse(spec, request), caller: callerName(response), request, response });
        if (response.headersSent) return;
        response.status(answer.status);
        if (answer.body === undefined) response.end();
        else response.json(answer.body);
      });
      router[spec.method](spec.path.replace(/\{(\w+)\}/g, ':$1'), ...steps);
      paths[spec.path] = { ...paths[spec.path], [spec.method]: describe(spec, security) };
    },

    /** The OpenAPI 3.1 document of all routes. */
    document(): Record<string, unknown> {
      return createDocument({
        openapi: '3.1.0',
        info: {
          title: options.title,
          version: options.version,
          description: options.description,
          license: { name: 'MIT', identifier: 'MIT' },
        },
        servers: [{ url: '/' }],
        tags: [
          ...new Set(Object.values(paths).flatMap((path) => Object.values(path).flatMap(({ tags = [] }) => tags))),
        ].map((name) => ({ name })),
        paths: paths as ZodOpenApiPathsObject,
        components: { securitySchemes: options.security as never },
      }) as unknown as Record<string, unknown>;
    },
  };
}

function parse<P extends z.ZodObject | undefined, Q extends z.ZodObject | undefined, B extends z.ZodType | undefined>(
  spec: RouteSpec<P, Q, B>,
  request: Request,
) {
  const params = spec.params?.safeParse(request.params);
  if (params && !params.success) throw new AppError('not_found', 'There is nothing with this id.');
  const body = request.body === undefined && spec.optionalBody ? {} : request.body;
  return {
    params: params?.data as Parsed<P>,
    query: (spec.query && parseFields(spec.query, request.query, 'The query')) as Parsed<Q>,
    body: (spec.body && (spec.checksBody ? body : parseFields(spec.body, body, 'The body'))) as Parsed<B>,
  };
}

function describe(
  spec: RouteSpec<z.ZodObject | undefined, z.ZodObject | undefined, z.ZodType | undefined>,
  security: Record<string, string[]>[],
): ZodOpenApiOperationObject {
  const { params, query, body } = spec;
  const problems = new Set([
    ...(spec.problems ?? []),
    ...(spec.open ? [] : [401, 429]),
    ...(body ? [400, 413, 415, 422] : []),
    ...(query ? [422] : []),
    ...(params ? [404] : []),
    503,
  ]);
  const answers = Object.entries(spec.answers).map(([status, { description, schema, type = 'application/json' }]) => [
    status,
    { description, ...(schema ? { content: { [type]: { schema } } } : {}) },
  ]);
  const problemAnswers = [...problems].sort().map((status) => [
    String(status),
    {
      description: titles.get(status) ?? 'Problem',
      content: { 'application/problem+json': { schema: problemSchema } },
    },
  ]);
  return {
    operationId: operationId(spec.method, spec.path),
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.description ? { description: spec.description } : {}),
    security: spec.open ? [] : security,
    requestParams: { ...(params ? { path: params } : {}), ...(query ? { query } : {}) },
    ...(body
      ? { requestBody: { required: !spec.optionalBody, content: { 'application/json': { schema: body } } } }
      : {}),
    responses: Object.fromEntries([...answers, ...problemAnswers]),
  } as ZodOpenApiOperationObject;
}

const titles = new Map<number, string>(Object.values(errorCodes).map(({ status, title }) => [status, title]));

/** `post /v1/subscriptions/{id}/rotate-secret` is `post_subscriptions_id_rotate_secret`. */
function operationId(method: string, path: string): string {
  return [method, ...path.replace('/v1', '').split(/[^A-Za-z]+/)].filter(Boolean).join('_').toLowerCase();
}
