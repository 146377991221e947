/**
 * A console and a browser for the tests of one file, visits that end with the test, and an operator who is signed in.
 */
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Receiver } from '@posthorn/testing';
import type { Browser } from 'playwright-core';
import { atEnd } from '../own.ts';
import { OPERATOR_TOKEN, startWorld, type World } from '../world.ts';
import { launchBrowser, openVisit, type Visit } from './browser.ts';

/** The world of this file's tests. */
export let on: World;
let browser: Browser;
/** The state of a browser whose operator is signed in. */
let sessionCookie: Awaited<ReturnType<typeof newSessionCookie>>;
beforeAll(async () => {
  [on, browser] = await Promise.all([
    startWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000' } }),
    launchBrowser(),
  ]);
  sessionCookie = await newSessionCookie();
});
afterAll(async () => {
  await browser.close();
  await on.stop();
});

/** Signs in. Resolves with the cookie of the new session. */
export async function newSessionCookie({ consoleUrl } = on) {
  const answer = await fetch(`${consoleUrl}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: OPERATOR_TOKEN }),
  });
  const [name, value] = answer.headers.getSetCookie()[0]!.split(';')[0]!.split('=') as [string, string];
  return { name, value, url: consoleUrl };
}

/** A visit without signing in. The test fails if the page had errors. */
export async function visit(options: Parameters<typeof openVisit>[2] = {}): Promise<Visit> {
  const opened = await openVisit(browser, on.consoleUrl, options);
  atEnd(async () => {
    await opened.close();
    expect(opened.problems).toEqual([]);
  });
  return opened;
}

/** A visit of an operator, who has opened no page yet. */
export async function signedIn(options: Parameters<typeof visit>[0] = {}): Promise<Visit> {
  const opened = await visit(options);
  await opened.context.addCookies([sessionCookie]);
  return opened;
}

/** A visit of an operator, at the overview. */
export async function atOverview(options: Parameters<typeof visit>[0] = {}): Promise<Visit> {
  const opened = await signedIn(options);
  await opened.page.goto('/');
  await opened.page.getByRole('heading', { name: 'Overview' }).waitFor();
  return opened;
}

/** A validated subscription that is deleted at the end of the test. */
export async function ownSubscription(to: Receiver) {
  const subscription = await on.subscribe(to.url);
  atEnd(() => on.operate('DELETE', `/v1/subscriptions/${subscription.id}`));
  return subscription;
}
