/** Where the page is found. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import express from 'express';
import { pageRoutes } from './page-routes.ts';

it('is sent from a checkout in a folder whose name begins with a dot', async () => {
  const root = mkdtempSync(join(tmpdir(), '.posthorn-page-'));
  writeFileSync(join(root, 'index.html'), 'the page');
  const server = express().use(pageRoutes(root)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/subscriptions`;
  const { status } = await fetch(url, { headers: { accept: 'text/html' } });
  server.close();
  rmSync(root, { recursive: true });
  expect(status).toBe(200);
});
