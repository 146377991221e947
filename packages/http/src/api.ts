/** Declares routes: one declaration validates requests, serves the route and documents it in OpenAPI. */
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

/** A route: its request, its responses and its documentation. */
export interface RouteSpec<
  P extends z.ZodObject | undefined,
  Q extends z.ZodObject | undefined,
  B extends z.ZodType | undefined,
> {
  method: Method;
  /** As in OpenAPI, with parameters in braces: `/v1/events/{id}`. */
  path: string;
  /** One line. */
  summary: string;
  description?: string;
  tag: string;
  /** A path parameter that does not match results in 404. */
  params?: P;
  query?: Q;
  body?: B;
  /** Treats a missing body as `{}`. */
  optionalBody?: boolean;
  /** The handler validates the body itself and gets it as it was sent. */
  checksBody?: boolean;
  /** Maximum size of the body. */
  maxBodyBytes?: number;
  /** A budget that a call uses while its body arrives, besides the memory for bodies. */
  admission?: Admission;
  /** Responses of successful calls, by status. */
  responses: Record<number, { description: string; schema?: z.ZodType; type?: string }>;
  /** Statuses of problems that not every route returns. */
  problems?: readonly number[];
  /** Needs no authentication. */
  open?: boolean;
}

export interface RouteInput<P, Q, B> {
  params: Parsed<P>;
  query: Parsed<Q>;
  /** The parsed body; with `checksBody`, the body as it was sent. */
  body: Parsed<B>;
  /** The name of the caller; '' on an open route. */
  caller: string;
  request: Request;
  response: Response;
}

export interface RouteResult {
  status: number;
  /** Sent as JSON; undefined sends no body. */
  body?: unknown;
}

export type Api = ReturnType<typeof createApi>;

/** Total size of the bodies in memory, over all authenticated calls. Parsed values take several times as much. */
const MAX_BODIES_BYTES = 32 * 1024 * 1024;
/** Default of `maxBodyBytes`: most bodies are a few fields. */
const MAX_BODY_BYTES = 64 * 1024;
/**
 * Maximum size of the body of an open route. These bodies use no shared budget, so that unauthenticated clients cannot exhaust one.
 * The number of connections limits their total, because each connection has one body at a time.
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

/** Creates a router whose routes document themselves. */
export function createApi(options: {
  title: string;
  version: string;
  description: string;
  /** The security schemes of OpenAPI. */
  security: Record<
    string,
    { type: 'http' | 'apiKey'; scheme?: string; in?: 'cookie'; name?: string; description: string }
  >;
  /** Middleware that runs first on routes that are not open. */
  guards?: RequestHandler[];
}) {
  const router = Router();
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  const bodies: Admission = { budget: createBudget(MAX_BODIES_BYTES), weigh: (bytes) => bytes };
  const security = Object.keys(options.security).map((name) => ({ [name]: [] }));

  return {
    router,

    /** Adds a route. */
    route<
      P extends z.ZodObject | undefined = undefined,
      Q extends z.ZodObject | undefined = undefined,
      B extends z.ZodType | undefined = undefined,
    >(spec: RouteSpec<P, Q, B>, handle: (input: RouteInput<P, Q, B>) => Promise<RouteResult>): void {
      const steps: RequestHandler[] = spec.open ? [] : [...(options.guards ?? [])];
      if (spec.body) {
        const { maxBodyBytes = spec.open ? MAX_OPEN_BODY_BYTES : MAX_BODY_BYTES, optionalBody: optional = false } =
          spec;
        const admissions = spec.open ? [] : [bodies, ...(spec.admission ? [spec.admission] : [])];
        steps.push(jsonBody({ maxBytes: maxBodyBytes, optional, admissions }));
      }
      steps.push(async (request: Request, response: Response, _next: NextFunction) => {
        const result = await handle({ ...parse(spec, request), caller: callerName(response), request, response });
        if (response.headersSent) return;
        response.status(result.status);
        if (result.body === undefined) response.end();
        else response.json(result.body);
      });
      router[spec.method](spec.path.replace(/\{(\w+)\}/g, ':$1'), ...steps);
      paths[spec.path] = { ...paths[spec.path], [spec.method]: describe(spec, security) };
    },

    /** Returns the OpenAPI 3.1 document of all routes. */
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
  if (params && !params.success) throw new AppError('not_found', 'No resource has this id.');
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
  const responses = Object.entries(spec.responses).map(
    ([status, { description, schema, type = 'application/json' }]) => [
      status,
      { description, ...(schema ? { content: { [type]: { schema } } } : {}) },
    ],
  );
  const problemResponses = [...problems].sort().map((status) => [
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
    responses: Object.fromEntries([...responses, ...problemResponses]),
  } as ZodOpenApiOperationObject;
}

const titles = new Map<number, string>(Object.values(errorCodes).map(({ status, title }) => [status, title]));

/** Returns for example `post_subscriptions_id_rotate_secret` for `post /v1/subscriptions/{id}/rotate-secret`. */
function operationId(method: string, path: string): string {
  return [method, ...path.replace('/v1', '').split(/[^A-Za-z]+/)].filter(Boolean).join('_').toLowerCase();
}
