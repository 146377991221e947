/** docs/wire is what the schemas say, and its examples are valid. */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { EVENT_TYPES } from '@posthorn/core';
import { deliveryHeaders } from '@posthorn/signing';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { root } from './folder.ts';
import { wireFiles } from './wire-files.ts';

const folder = join(root, 'docs/wire');

describe('docs/wire', () => {
  it('is up to date: npm run generate-docs', () => {
    const files = wireFiles();
    expect(readdirSync(folder).sort()).toEqual(Object.keys(files).sort());
    for (const [file, text] of Object.entries(files))
      expect([file, readFileSync(join(folder, file), 'utf8')]).toEqual([file, text]);
  });
  it.each(EVENT_TYPES)('has a valid schema with a valid example for %s', (type) => {
    const schema = JSON.parse(readFileSync(join(folder, `${type}.schema.json`), 'utf8'));
    const validate = new Ajv2020({ strict: true }).compile(schema);
    expect(schema.examples).toHaveLength(1);
    for (const example of schema.examples) expect([validate(example), validate.errors]).toEqual([true, null]);
    expect(validate({ ...schema.examples[0], type: 'session.lost' })).toBe(false);
    expect(validate({ ...schema.examples[0], data: {} })).toBe(false);
  });
  it('has an AsyncAPI document that is valid by the schema of AsyncAPI 3.0', () => {
    const require = createRequire(import.meta.url);
    const schema = require('@asyncapi/specs/schemas/3.0.0.json');
    const validate = new Ajv({ strict: false, validateFormats: false, meta: false, validateSchema: false }).compile(
      schema,
    );
    const document = JSON.parse(readFileSync(join(folder, 'asyncapi.json'), 'utf8'));
    expect([validate(document), validate.errors]).toEqual([true, null]);
    expect(validate({ ...document, servers: { one: {} } })).toBe(false);
  });
  it('allows other headers beside those of Posthorn: those of HTTP, and new ones', () => {
    const { components } = JSON.parse(readFileSync(join(folder, 'asyncapi.json'), 'utf8'));
    const validate = new Ajv2020().compile(components.messages.session_approved.headers);
    const delivery = { id: 'dlv_1', eventId: 'evt_1', eventType: 'session.approved' };
    const headers = deliveryHeaders(delivery, '{}', ['secret'], 1_800_000_000);
    expect([validate({ ...headers, 'User-Agent': 'Posthorn' }), validate.errors]).toEqual([true, null]);
    expect(validate({ ...headers, 'Service-Signature': 't=1' })).toBe(false);
  });
});
