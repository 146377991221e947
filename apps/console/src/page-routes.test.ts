/** Where the operators' page is found, and which requests get it. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import { pageRoutes } from './page-routes.ts';

/** In a checkout in a folder whose name begins with a dot. */
const root = mkdtempSync(join(tmpdir(), '.posthorn-page-'));
const server = createServer(express().use(pageRoutes(root)));
beforeAll(async () => {
  writeFileSync(join(root, 'index.html'), 'the page');
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  server.close();
  rmSync(root, { recursive: true });
});

async function ask(method: string, path: string, accept: string): Promise<number> {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { accept } });
  const text = await response.text();
  if (response.ok) expect(text).toBe(method === 'HEAD' ? '' : 'the page');
  return response.status;
}

describe('the page', () => {
  it.each([
    ['GET', '/', 'text/html,*/*'],
    ['GET', '/subscriptions', 'text/html,*/*'],
    ['HEAD', '/subscriptions', 'text/html,*/*'],
    ['GET', '/', '*/*'],
    ['HEAD', '/', '*/*'],
  ])('is the response to %s %s of a client that accepts %s', async (method, path, accept) => {
    expect(await ask(method, path, accept)).toBe(200);
  });
  it.each([
    ['GET', '/subscriptions', '*/*'],
    ['GET', '/', 'application/json'],
    ['GET', '/v1/nope', 'text/html'],
    ['GET', '/assets/nope.js', 'text/html'],
    ['POST', '/', 'text/html'],
  ])('is not the response to %s %s of a client that accepts %s', async (method, path, accept) => {
    expect(await ask(method, path, accept)).toBe(404);
  });
});
