/** The files of docs/wire, by name. */
import { EVENT_TYPES } from '@posthorn/core';
import { asyncApi, jsonSchemaOf } from '@posthorn/http';
import { jsonText } from './json-text.ts';

export function wireFiles(): Record<string, string> {
  return {
    'asyncapi.json': jsonText(asyncApi()),
    ...Object.fromEntries(EVENT_TYPES.map((type) => [`${type}.schema.json`, jsonText(jsonSchemaOf(type))])),
  };
}
