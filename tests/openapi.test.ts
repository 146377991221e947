/** The OpenAPI documents: valid according to an independent validator, and complete. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { callApi } from '../scripts/api-client.ts';
import { OPERATOR_TOKEN, PUBLISHER_KEY, startWorld, type World } from './world.ts';

let on: World;
beforeAll(async () => {
  on = await startWorld({ workers: 0 });
});
afterAll(() => on.stop());

/** An operation with a body, in the document. */
interface Documented {
  requestBody?: {
    content: {
      'application/json': { example?: unknown; schema: { properties: Record<string, { default?: unknown }> } };
    };
  };
}
interface Parameter {
  name: string;
  schema: object;
}
interface Layer {
  route?: { path: string; methods: Record<string, boolean> };
  handle: { stack?: Layer[] };
}
/** Every route that an express app serves, as `get /v1/events/{id}`. */
function routesOf({ stack }: { stack: Layer[] }): string[] {
  return stack.flatMap(({ route, handle }) => {
    if (!route) return handle.stack ? routesOf({ stack: handle.stack }) : [];
    return Object.keys(route.methods).map((method) => `${method} ${route.path.replace(/:(\w+)/g, '{$1}')}`);
  });
}
function documented(paths: Record<string, Record<string, unknown>>): string[] {
  return Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`));
}
/** All that is within a part of a document, itself included. */
function within(part: unknown): Record<string, unknown>[] {
  if (typeof part !== 'object' || part === null) return [];
  return [part as Record<string, unknown>, ...Object.values(part).flatMap(within)];
}
const isApi = (route: string) => /^\w+ \/(v1|healthz|readyz|metrics)/.test(route);

describe.each(['ingest', 'console'] as const)('the document of %s', (app) => {
  const document = async () =>
    (await (await fetch(`${app === 'ingest' ? on.ingestUrls[0] : on.consoleUrl}/openapi.json`)).json()) as {
      openapi: string;
      paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
    };
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate((await document()) as never);
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(validator.version).toBe('3.1');
  });
  it('has schemas that are strict JSON Schema, and that accept their defaults', async () => {
    const text = JSON.stringify(await document()).replaceAll('"#/components/schemas/', '"');
    const { components, ...rest } = JSON.parse(text) as { components: { schemas: Record<string, object> } };
    const ajv = new Ajv2020({ strict: true, formats: { 'date-time': true } });
    for (const [name, schema] of Object.entries(components.schemas)) ajv.addSchema(schema, name);
    for (const name of Object.keys(components.schemas)) ajv.getSchema(name);
    const schemas = within(rest).flatMap(({ schema }) => (schema ? JSON.stringify(schema) : []));
    for (const schema of new Set(schemas)) ajv.compile(JSON.parse(schema));
    const withDefault = within({ components, rest }).filter((part) => 'default' in part && 'type' in part);
    const isAccepted = (schema: Record<string, unknown>) => ajv.validate(schema, schema.default);
    expect(withDefault.filter((schema) => !isAccepted(schema))).toEqual([]);
  });
  it('names the items of a list that is one of several choices', async () => {
    // oapi-codegen gives the list and its unnamed items the same name, and fails.
    const choices = within(await document()).flatMap(({ anyOf }) => (anyOf as { items?: object }[] | undefined) ?? []);
    expect(choices.filter(({ items }) => items && 'enum' in items)).toEqual([]);
  });
  it('has every route that the app serves, and no other', async () => {
    const served = routesOf((on.expressOf(app) as unknown as { router: { stack: Layer[] } }).router).filter(isApi);
    expect(documented((await document()).paths).sort()).toEqual(served.sort());
    expect(served.length).toBeGreaterThan(3);
  });
  it('names each operation once and has a response for each', async () => {
    const operations = Object.values((await document()).paths).flatMap((path) => Object.values(path));
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const { responses } of operations) expect(Object.keys(responses).some((status) => status < '300')).toBe(true);
  });
  it('has an example of each body that its route takes', async () => {
    const { paths } = (await document()) as unknown as { paths: Record<string, Record<string, Documented>> };
    const url = app === 'ingest' ? on.ingestUrls[0]! : on.consoleUrl;
    const example = { url: 'https://example.com/', event_types: 'all', environment: 'both' };
    const { id } = (await on.operate('POST', '/v1/subscriptions', example)).body;
    const token = app === 'ingest' ? PUBLISHER_KEY : OPERATOR_TOKEN;
    for (const [path, method, { requestBody }] of Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [path, method, operation] as const),
    )) {
      if (!requestBody) continue;
      const { example, schema } = requestBody.content['application/json'];
      const defaults = Object.entries(schema.properties).map(([name, { default: value }]) => [name, value]);
      const body = example ?? Object.fromEntries(defaults);
      const { status } = await callApi(method.toUpperCase(), `${url}${path.replace('{id}', id)}`, { token, body });
      expect([path, [400, 422].includes(status)]).toEqual([path, false]);
    }
  });
  it('allows new fields in a response, which are no breaking change, but not in a request', async () => {
    const { paths, components } = (await document()) as unknown as {
      paths: Record<string, Record<string, { requestBody?: unknown; responses: unknown }>>;
      components: unknown;
    };
    const operations = Object.values(paths).flatMap((path) => Object.values(path));
    const isClosed = (part: unknown) => JSON.stringify(part).includes('"additionalProperties":false');
    expect(operations.map(({ responses }) => responses).filter(isClosed)).toEqual([]);
    expect(isClosed(components)).toBe(false);
    const requests = operations.flatMap(({ requestBody }) => requestBody ?? []);
    expect(requests.filter((request) => !isClosed(request))).toEqual([]);
  });
  it('names the codes of the problems that a call can get, and when to retry', async () => {
    const { paths } = await document();
    const problemsOf = (method: string, path: string) =>
      Object.fromEntries(
        Object.entries(paths[path]![method]!.responses as Record<string, { description: string; headers?: object }>)
          .filter(([status]) => status >= '400' && status !== 'default')
          .map(([status, { description, headers }]) => {
            const codes = [...description.matchAll(/`(\w+)`/g)].map((match) => match[1]);
            return [status, headers ? [...codes, ...Object.keys(headers)] : codes];
          }),
      );
    const ofBody = {
      400: ['invalid_json', 'bad_request'],
      401: ['unauthorized'],
      413: ['body_too_large'],
      415: ['unsupported_media_type'],
      422: ['invalid_fields'],
      503: ['unavailable', 'overloaded', 'Retry-After'],
    };
    const tooMany = { 429: ['too_many_requests', 'Retry-After'] };
    if (app === 'ingest') {
      expect(problemsOf('post', '/v1/events')).toEqual({
        ...ofBody,
        403: ['forbidden_environment'],
        409: ['conflict'],
        429: ['too_many_requests', 'quota_exceeded', 'Retry-After'],
      });
      expect(problemsOf('post', '/v1/events/batch')).toEqual({ ...ofBody, ...tooMany });
    } else {
      expect(problemsOf('post', '/v1/subscriptions')).toEqual({
        ...ofBody,
        ...tooMany,
        403: ['forbidden_csrf'],
        409: ['conflict'],
        503: ['unavailable', 'overloaded', 'not_changed', 'Retry-After'],
      });
      expect(Object.keys(problemsOf('get', '/v1/subscriptions'))).toEqual(['401', '422', '429', '503']);
    }
    expect(problemsOf('get', '/healthz')).toEqual({});
    expect(problemsOf('get', '/readyz')).toEqual({ 503: ['unavailable', 'Retry-After'] });
  });
  it('names for each operation what any call can get', async () => {
    const url = new URL((app === 'ingest' ? on.ingestUrls[0] : on.consoleUrl)!);
    const start = 'GET /healthz HTTP/1.1\r\nHost: x\r\n';
    const requests = [
      'GET /healthz HTTP/1.1\r\n\r\n',
      `${start}Expect: more\r\n\r\n`,
      `${start}X: ${'y'.repeat(20_000)}\r\n\r\n`,
    ];
    const codes: unknown[] = [];
    for (const request of requests) {
      const socket = connect(Number(url.port), url.hostname, () => socket.write(request));
      codes.push(/"code":"(\w+)"/.exec(await text(socket))?.[1]);
    }
    expect(codes).toEqual(['bad_request', 'expectation_failed', 'headers_too_large']);
    const operations = Object.values((await document()).paths).flatMap((path) => Object.values(path));
    for (const { responses } of operations) {
      const { description } = responses.default as { description: string };
      for (const code of codes) expect(description).toContain(`\`${code}\``);
    }
  });
  it('has for each parameter the type that a generated client should take', async () => {
    const { paths } = await document();
    const parameters = within(paths).flatMap(({ parameters }) => (parameters as Parameter[] | undefined) ?? []);
    const schemaOf = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
    if (app === 'ingest') return;
    expect(schemaOf.limit).toMatchObject({ type: 'integer', minimum: 1, maximum: 250, default: 50 });
    expect(schemaOf.attempt).toMatchObject({ type: 'integer', minimum: 1, maximum: 99 });
    expect(schemaOf.failed).toMatchObject({ type: 'boolean' });
  });
  it('is shown by a page that loads nothing from elsewhere', async () => {
    const url = app === 'ingest' ? on.ingestUrls[0] : on.consoleUrl;
    const page = await (await fetch(`${url}/docs`)).text();
    const addresses = [...page.matchAll(/<(?:script src|link rel="stylesheet" href)="([^"]+)"/g)].map(
      (match) => match[1]!,
    );
    expect(addresses.length).toBeGreaterThan(2);
    // A part or a version of a file is not a reason for an error.
    const conditions = { range: 'bytes=99999999-', 'if-match': '"x"' };
    for (const address of addresses)
      for (const headers of [{}, conditions])
        expect((await fetch(new URL(address, `${url}/`), { headers })).status).toBe(200);
    expect(addresses.every((address) => address.startsWith('/docs/'))).toBe(true);
  });
});

it('ingest documents the events of a batch and their problems as those of a single event', async () => {
  const { paths, components } = (await (await fetch(`${on.ingestUrls[0]}/openapi.json`)).json()) as {
    paths: Record<string, { post: { requestBody: { content: { 'application/json': { schema: BatchSchema } } } } }>;
    components: { schemas: { BatchResults: object } };
  };
  const bodyOf = (path: string) => paths[path]!.post.requestBody.content['application/json'].schema;
  expect(bodyOf('/v1/events/batch').properties.events.items).toEqual(bodyOf('/v1/events'));
  const problem = { $ref: '#/components/schemas/Problem' };
  expect(within(components.schemas.BatchResults).flatMap(({ error }) => error ?? [])).toEqual([problem]);
});
interface BatchSchema {
  properties: { events: { items: unknown } };
}
