/** What is taken for the message of an error response. */
import { describe, expect, it } from '@jest/globals';
import { responseMessage } from './response-message.ts';

const message = (body: string, type?: string) =>
  responseMessage({ headers: type === undefined ? {} : { 'content-type': type }, body });

describe('the message of a response', () => {
  it.each([
    ['{"error":"database is read-only"}', 'database is read-only'],
    ['{"error":{"code":7,"message":"no such tenant"},"title":"x"}', 'no such tenant'],
    ['{"errors":[{"detail":"too  many\\nrows"}]}', 'too many rows'],
    ['{"code":12}', '{"code":12}'],
    ['{"error":"cut of', '{"error":"cut of'],
    ['  upstream timed out\n\n at line 3 ', 'upstream timed out at line 3'],
    ['<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head>', '502 Bad Gateway'],
    ['<html><body>Oops</body></html>', null],
    ['', null],
    [' \n', null],
    ['{"__proto__":{"message":"inherited"}}', '{"__proto__":{"message":"inherited"}}'],
    [`${'['.repeat(50)}"deep"${']'.repeat(50)}`, `${'['.repeat(50)}"deep"${']'.repeat(50)}`],
  ])('%j says %j', (body, expected) => {
    expect(message(body)).toBe(expected);
  });
  it('is the title of a page by its type too, and has at most 160 characters', () => {
    expect(message('x<title lang="en">Down</title>', 'text/html; charset=utf-8')).toBe('Down');
    expect(message('😀'.repeat(200))).toBe(`${'😀'.repeat(159)}…`);
    expect(message('a'.repeat(160))).toBe('a'.repeat(160));
  });
});
