/** Declares routes: one declaration validates requests, serves the route and documents it in OpenAPI. */
import { AppError, type ErrorCode, errorCodes } from '@posthorn/core';
import { version } from '@posthorn/runtime';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiComponentsObject,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import { callerName } from './auth.ts';
import { createBudget } from './budget.ts';
import { type BodyBudget, handledBy, jsonBody, type TurnFor } from './json-body.ts';
import { parseFields } from './problems.ts';
import type { DirectRoutes } from './shortcut.ts';

type Method = 'get' | 'post' | 'patch' | 'delete';
type Fields = z.ZodObject | undefined;
type Body = z.ZodType | undefined;
type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** A route: its request, its responses, its documentation, and what it does. */
interface Route<P extends Fields, Q extends Fields, B extends Body> {
  /** One line. */
  summary: string;
  description?: string;
  /** A path parameter that does not match results in 404. */
  params?: P;
  query?: Q;
  body?: B;
  /** Treats a missing body as `{}`. */
  optionalBody?: boolean;
  /** `handle` validates the body itself and gets it as it was sent. */
  checksBody?: boolean;
  /** Maximum size of the body; at most 16 MiB. */
  maxBodyBytes?: number;
  /** The setting behind it, which the refusal names. */
  maxBodyBytesSetting?: string;
  /** A budget that a call uses while its body arrives, besides the memory for bodies. */
  bodyBudget?: BodyBudget;
  /** Decides when a large body is parsed. */
  turnFor?: TurnFor;
  /** Responses of successful calls, by status. The lowest status is the default. */
  responses: Record<number, { description: string; schema?: z.ZodType; type?: string }>;
  /** Codes of problems that not every route returns. */
  problems?: readonly ErrorCode[];
  /** Needs no authentication. */
  open?: boolean;
  /**
   * Resolves with the body, which is sent as JSON; undefined sends no body. May set another status than the default.
   */
  handle(input: RouteInput<P, Q, B>): Promise<unknown>;
}

interface RouteInput<P, Q, B> {
  params: Parsed<P>;
  query: Parsed<Q>;
  /** The parsed body; with `checksBody`, the body as it was sent. */
  body: Parsed<B>;
  /** The name of the caller; '' on an open route. */
  caller: string;
  request: Request;
  response: Response;
}

export type Api = ReturnType<typeof createApi>;

/** Total size of the bodies in memory, over all authenticated calls. Parsed values take several times as much. */
const MAX_BODIES_BYTES = 32 * 1024 * 1024;
/** What one caller may hold of them. A larger body would get 503, however often it is sent. */
const MAX_ADMITTED_BYTES = MAX_BODIES_BYTES / 2;
/** Default of `maxBodyBytes`: most bodies are a few fields. */
const MAX_BODY_BYTES = 64 * 1024;
/**
 * Maximum size of the body of an open route. These bodies use no shared budget, so that unauthenticated clients cannot
 * exhaust one. The number of connections limits their total, because each connection has one body at a time.
 */
const MAX_OPEN_BODY_BYTES = 4 * 1024;

export const problemSchema = z
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
  description: string;
  /** The security schemes of OpenAPI. */
  security: NonNullable<ZodOpenApiComponentsObject['securitySchemes']>;
  /** Middleware that runs first on routes that are not open. */
  guards?: RequestHandler[];
  /** Codes of problems that calls other than GET may have. */
  changeProblems?: readonly ErrorCode[];
  /** Makes the calls other than GET: `handle` is that of the route. */
  change?: <T>(handle: () => Promise<T>) => Promise<T>;
  /** What the service sends to others. */
  webhooks?: ZodOpenApiPathsObject;
}) {
  const { title, description, guards = [], changeProblems = [], change = (handle) => handle() } = options;
  const router = Router();
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  const tags = new Set<string>();
  const direct = new Map<string, readonly RequestHandler[]>();
  const bodies: BodyBudget = { budget: createBudget(MAX_BODIES_BYTES), weigh: (bytes) => bytes };
  const security = Object.keys(options.security).map((name) => ({ [name]: [] }));

  return {
    title,
    router,
    /** The handlers of the routes that have no parameters. */
    direct: direct as DirectRoutes,

    /**
     * Returns functions that add routes under a tag. In a path, parameters are in braces, as in OpenAPI:
     * `/v1/events/{id}`.
     */
    tagged(tag: string) {
      tags.add(tag);
      const adder =
        (method: Method) =>
        <P extends Fields = undefined, Q extends Fields = undefined, B extends Body = undefined>(
          path: string,
          route: Route<P, Q, B>,
        ): void => {
          const call = method === 'get' ? <T>(handle: () => Promise<T>) => handle() : change;
          const handlers = [...(route.open ? [] : guards), ...middleware(route, bodies, call)];
          router[method](path.replace(/\{(\w+)\}/g, ':$1'), ...handlers);
          if (!route.params) direct.set(`${method.toUpperCase()} ${path}`, handlers);
          const more = method === 'get' || route.open ? [] : changeProblems;
          const operation = { operationId: operationId(method, path), tags: [tag], ...describe(route, more) };
          paths[path] = { ...paths[path], [method]: { ...operation, security: route.open ? [] : security } };
        };
      return { get: adder('get'), post: adder('post'), patch: adder('patch'), delete: adder('delete') };
    },

    /** Returns the OpenAPI 3.1 document of all routes. */
    document: () =>
      withOpenResponses({
        openapi: '3.1.0',
        info: { title, version, description, license: { name: 'MIT', identifier: 'MIT' } },
        servers: [{ url: '/' }],
        tags: [...tags, ...(options.webhooks ? ['Deliveries to receivers'] : [])].map((name) => ({ name })),
        paths: paths as ZodOpenApiPathsObject,
        ...(options.webhooks && { webhooks: options.webhooks }),
        components: { securitySchemes: options.security },
      }),
  };
}

/**
 * Returns the document with responses that allow unknown fields, because a later release may add some
 * (docs/upgrades.md): a client that is generated from the document must accept them. Requests are as their schemas say.
 * The `override` of createDocument can't do this: it leaves `additionalProperties` beside a `$ref` with a description.
 */
function withOpenResponses(parts: ZodOpenApiObject): ReturnType<typeof createDocument> {
  const document = createDocument(parts);
  const open = <T extends object>(part: T): T =>
    JSON.parse(JSON.stringify(part), (key, value) => (key === 'additionalProperties' && !value ? undefined : value));
  for (const operations of Object.values(document.paths ?? {}))
    for (const operation of Object.values(operations)) operation.responses = open(operation.responses);
  // Requests refer to no object of these.
  const schemas = open(document.components?.schemas ?? {});
  return { ...document, components: { ...document.components, schemas } };
}

/** Returns the middleware of a route: reads its body, then calls `handle` and sends the result. */
function middleware<P extends Fields, Q extends Fields, B extends Body>(
  route: Route<P, Q, B>,
  bodies: BodyBudget,
  call: <T>(handle: () => Promise<T>) => Promise<T>,
): RequestHandler[] {
  const { open, bodyBudget, turnFor, optionalBody: optional = false, maxBodyBytesSetting: maxBytesSetting } = route;
  const maxBytes = Math.min(route.maxBodyBytes ?? (open ? MAX_OPEN_BODY_BYTES : MAX_BODY_BYTES), MAX_ADMITTED_BYTES);
  const bodyBudgets = open ? [] : [bodies, ...(bodyBudget ? [bodyBudget] : [])];
  const defaultStatus = Number(Object.keys(route.responses)[0]);
  const handle = async (request: Request, response: Response) => {
    response.status(defaultStatus);
    const input = { ...parse(route, request), caller: callerName(response), request, response };
    const body = await call(() => route.handle(input));
    if (response.headersSent) return;
    if (body === undefined) response.end();
    else sendJson(response, body);
  };
  return route.body
    ? [
        jsonBody({ maxBytes, maxBytesSetting, optional, bodyBudgets, turnFor }),
        (request, response) => handledBy(response, handle(request, response)),
      ]
    : [handle];
}

/**
 * Like express's `json`, without its settings and its comparison with conditional requests, which take a tenth of a
 * small call.
 */
function sendJson(response: Response, body: unknown): void {
  const text = JSON.stringify(body);
  const type = 'application/json; charset=utf-8';
  response.writeHead(response.statusCode, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

function parse<P extends Fields, Q extends Fields, B extends Body>(route: Route<P, Q, B>, request: Request) {
  const params = route.params?.safeParse(request.params);
  if (params && !params.success) throw new AppError('not_found', 'No resource has this id.');
  const { body } = request;
  return {
    params: params?.data as Parsed<P>,
    query: (route.query && parseFields(route.query, request.query, 'The query')) as Parsed<Q>,
    body: (route.body && (route.checksBody ? body : parseFields(route.body, body, 'The body'))) as Parsed<B>,
  };
}

function describe(
  route: Route<Fields, Fields, Body>,
  more: readonly ErrorCode[],
): Omit<ZodOpenApiOperationObject, 'security'> {
  const { summary, description, params, query, body, open } = route;
  // Not left to the schema: the documents of schemas that transform have no examples.
  const example = body?.meta()?.examples?.at(0);
  const codes: readonly ErrorCode[] = [
    ...(body
      ? (['invalid_json', 'bad_request', 'body_too_large', 'unsupported_media_type', 'invalid_fields'] as const)
      : []),
    ...(query ? (['invalid_fields'] as const) : []),
    ...(params ? (['not_found'] as const) : []),
    ...(open ? [] : (['unauthorized', 'too_many_requests', 'unavailable'] as const)),
    ...(body && !open ? (['overloaded'] as const) : []),
    ...(route.problems ?? []),
    ...more,
  ];
  const responses = [
    ...Object.entries(route.responses).map(([status, { description, schema, type = 'application/json' }]) => [
      status,
      { description, ...(schema && { content: { [type]: { schema } } }) },
    ]),
    ...problemResponses(codes),
    ['default', ofAnyCall],
  ];
  return {
    summary,
    ...(description !== undefined && { description }),
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    ...(body && {
      requestBody: {
        required: !route.optionalBody,
        content: { 'application/json': { schema: body, ...(example !== undefined && { example }) } },
      },
    }),
    responses: Object.fromEntries(responses),
  };
}

/** Problems that every call may have, mostly since the request as a whole is not accepted. */
const CODES_OF_ANY_CALL = [
  'bad_request',
  'request_timeout',
  'body_too_large',
  'expectation_failed',
  'headers_too_large',
  'internal',
] as const satisfies ErrorCode[];

const ofAnyCall = {
  description: `As for any call: ${CODES_OF_ANY_CALL.map((code) => `${errorCodes[code].status} \`${code}\`: ${errorCodes[code].title}.`).join(' ')}`,
  content: { 'application/problem+json': { schema: problemSchema } },
};

/** The responses of problems with these codes, by status. Each names its codes. */
function problemResponses(codes: readonly ErrorCode[]) {
  const titles = new Map<number, Set<string>>();
  for (const code of codes) {
    const { status, title } = errorCodes[code];
    titles.set(status, (titles.get(status) ?? new Set()).add(`\`${code}\`: ${title}.`));
  }
  return [...titles].map(([status, lines]) => [
    status,
    {
      description: [...lines].join(' '),
      ...((status === 429 || status === 503) && { headers: retryAfter }),
      content: { 'application/problem+json': { schema: problemSchema } },
    },
  ]);
}

const retryAfter = { 'Retry-After': { description: 'Seconds to wait', schema: { type: 'integer' as const } } };

/** Returns for example `post_subscriptions_id_rotate_secret` for `post /v1/subscriptions/{id}/rotate-secret`. */
function operationId(method: string, path: string): string {
  return [method, ...path.replace('/v1', '').split(/[^A-Za-z]+/)].filter(Boolean).join('_').toLowerCase();
}
