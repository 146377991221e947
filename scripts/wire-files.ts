/** The files of docs/wire, by name. */
import { EVENT_TYPES } from '@posthorn/core';
import { asyncApi, jsonSchemaOf } from '@posthorn/http';

export function wireFiles(): Record<string, string> {
  const text = (content: unknown) => `${JSON.stringify(content, null, 2)}\n`;
  return {
    'asyncapi.json': text(asyncApi()),
    ...Object.fromEntries(EVENT_TYPES.map((type) => [`${type}.schema.json`, text(jsonSchemaOf(type))])),
  };
}
