/** What Posthorn sends, as documents: webhooks of OpenAPI, AsyncAPI, and a JSON Schema for each event type. */
import { deliveredEventSchema, EMITTED_WHEN, EVENT_TYPES, type EventType } from '@posthorn/core';
import { version } from '@posthorn/runtime';
import { z } from 'zod';
import { createSchema, type ZodOpenApiPathsObject } from 'zod-openapi';

const HEADERS: Record<string, { description: string; pattern?: RegExp; isOptional?: true }> = {
  'Service-Signature': {
    description:
      't=<unix seconds>,v1=<hex>: HMAC-SHA256 over `<t>.<raw body>`, keyed with the secret of the subscription; during a rotation, two v1',
    pattern: /^t=\d+(,v1=[0-9a-f]{64}){1,2}$/,
  },
  'Service-Event': { description: 'The event type' },
  'Service-Event-Id': { description: 'The id of the event' },
  'Service-Delivery-Id': { description: 'The id of the delivery' },
  traceparent: {
    description:
      'W3C Trace Context: the trace of the event, if there is one and the installation sends it (`SEND_TRACEPARENT`)',
    pattern: /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/,
    isOptional: true,
  },
};

const headersSchema = z.looseObject(
  Object.fromEntries(
    Object.entries(HEADERS).map(([name, { description, pattern, isOptional }]) => {
      const schema = (pattern ? z.string().regex(pattern) : z.string()).describe(description);
      return [name, isOptional ? schema.optional() : schema];
    }),
  ),
);

/** The `webhooks` of an OpenAPI 3.1 document: the request that a receiver gets for each event type. */
export function webhooks(): ZodOpenApiPathsObject {
  const operation = (type: EventType) => ({
    operationId: `receive-${type.replaceAll(/[._]/g, '-')}`,
    tags: ['Deliveries to receivers'],
    summary: EMITTED_WHEN[type],
    security: [],
    requestParams: { header: headersSchema },
    requestBody: { required: true, content: { 'application/json': { schema: deliveredEventSchema(type) } } },
    responses: {
      '2XX': { description: 'Accepted, within 8 seconds. The body is not used.' },
      default: { description: 'Any other status, or none in time: the delivery is repeated.' },
    },
  });
  return Object.fromEntries(EVENT_TYPES.map((type) => [type, { post: operation(type) }]));
}

/** The JSON Schema (2020-12) of the body of a delivery of this type. */
export function jsonSchemaOf(type: EventType): Record<string, unknown> {
  const { schema } = createSchema(deliveredEventSchema(type), { openapiVersion: '3.1.0' });
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...(schema as object) };
}

/** The AsyncAPI 3.0 document of the deliveries. */
export function asyncApi() {
  const nameOf = (type: EventType) => type.replaceAll('.', '_');
  const { schema: headers } = createSchema(headersSchema, { openapiVersion: '3.1.0' });
  const messages = Object.fromEntries(
    EVENT_TYPES.map((type) => {
      const { $schema: _, ...payload } = jsonSchemaOf(type);
      return [
        nameOf(type),
        { name: type, summary: EMITTED_WHEN[type], contentType: 'application/json', headers, payload },
      ];
    }),
  );
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Posthorn deliveries',
      version,
      description:
        'Signed webhooks, at least once, possibly out of order. Receivers are the servers; Posthorn calls them.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    channels: {
      receiver: {
        description: 'The address of a subscription',
        messages: Object.fromEntries(
          EVENT_TYPES.map((type) => [nameOf(type), { $ref: `#/components/messages/${nameOf(type)}` }]),
        ),
        bindings: { http: {} },
      },
    },
    operations: {
      deliver: {
        action: 'send',
        channel: { $ref: '#/channels/receiver' },
        summary: 'A POST for each event that matches the subscription',
        bindings: { http: { method: 'POST', bindingVersion: '0.3.0' } },
        messages: EVENT_TYPES.map((type) => ({ $ref: `#/channels/receiver/messages/${nameOf(type)}` })),
      },
    },
    components: { messages },
  };
}
