/** Compares deliveries with the documents of the wire. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { isDelivery, type ReceivedRequest } from '@posthorn/testing';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { root } from '../scripts/folder.ts';

const ajv = new Ajv2020();
const validators = new Map<string, ValidateFunction>();

/** Fails for a delivery whose body is not what the schema of its type says. */
export function expectDocumented(requests: readonly ReceivedRequest[]): void {
  for (const { headers, body } of requests.filter(isDelivery)) {
    const type = String(headers['service-event']);
    let validate = validators.get(type);
    if (validate === undefined) {
      validate = ajv.compile(JSON.parse(readFileSync(join(root, `docs/wire/${type}.schema.json`), 'utf8')));
      validators.set(type, validate);
    }
    expect([body, validate(JSON.parse(body, finite)), validate.errors]).toEqual([body, true, null]);
  }
}

/**
 * An integer on the wire may have any number of digits; JavaScript reads too many as infinity, which no schema allows.
 */
const finite = (_key: string, value: unknown) =>
  value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY ? Number.MAX_SAFE_INTEGER : value;
