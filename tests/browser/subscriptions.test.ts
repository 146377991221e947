/** The page in a real browser: signing in, and what operators do with subscriptions. */
import { describe, expect, it } from '@jest/globals';
import { isDelivery } from '@posthorn/testing';
import type { Locator, Page } from 'playwright-core';
import { atEnd, ownReceiver } from '../own.ts';
import { OPERATOR_TOKEN, sampleEvent } from '../world.ts';
import { confirmed, copyWith, holdBack } from './browser.ts';
import { atOverview, newSessionCookie, on, ownSubscription, signedIn, visit } from './own-visit.ts';

/** Rotates the secret of the subscription on screen, and goes back. Returns what lets the response arrive. */
async function rotateAndGoBack(page: Page): Promise<() => void> {
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Rotate secret' }).click();
  const answer = await holdBack(page, '**/rotate-secret');
  await page.getByRole('button', { name: 'Rotate' }).click();
  await page.locator('button:disabled', { hasText: 'Cancel' }).waitFor();
  await page.goBack();
  return answer;
}

describe('signing in', () => {
  it('refuses a wrong token, and then leads to the page that was asked for', async () => {
    const { page, signIn } = await visit();
    await page.goto('/deliveries?status=failed');
    await page.waitForURL('**/sign-in?next=*');
    await signIn('wrong');
    await page.getByText('This is not an operator token.').waitFor();
    await signIn();
    await page.waitForURL('**/deliveries?status=failed');
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
  });
  it('leads back to the same page after an expired session; signing out ends it', async () => {
    const { page, context, signIn } = await signedIn();
    await page.goto('/audit');
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
    await context.clearCookies();
    await page.waitForURL('**/sign-in?next=%2Faudit');
    await page.getByText('Your session has ended.').waitFor();
    expect(await page.title()).toBe('Sign in · Posthorn');
    await signIn();
    await page.waitForURL('**/audit');
    await page.getByRole('button', { name: 'Signed in as tests' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Posthorn' }).waitFor();
    expect(await page.getByText('Your session has ended.').count()).toBe(0);
    await page.goto('/');
    await page.waitForURL('**/sign-in');
  });
  it('shows no message about an expired session if a read is refused before the sign-out is answered', async () => {
    const { page, signIn } = await visit();
    await page.goto('/');
    await signIn();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const refused = page.waitForResponse((response) => response.status() === 401);
    const signInPage = page.getByRole('heading', { name: 'Sign in to Posthorn' });
    await page.route('**/v1/session', async (route) => {
      if (route.request().method() !== 'DELETE') return await route.continue();
      const response = await route.fetch();
      await refused;
      await signInPage.waitFor();
      await route.fulfill({ response });
    });
    const signedOut = page.waitForResponse((response) => response.request().method() === 'DELETE');
    await page.getByRole('button', { name: 'Signed in as tests' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    expect((await signedOut).status()).toBe(204);
    await signInPage.waitFor();
    expect(await page.getByText('Your session has ended.').count()).toBe(0);
  });
  it.each(['shown', 'loading'])('in one tab also signs in another tab whose sign-in page is %s', async (state) => {
    const { page, context, signIn } = await signedIn();
    const subscription = await ownSubscription(await ownReceiver());
    const other = await context.newPage();
    await other.goto(`/subscriptions/${subscription.id}`);
    await other.getByRole('button', { name: 'Send test' }).waitFor();
    await page.goto('/audit');
    const letLoad = await holdBack(other, '**/sign-in-*.js');
    await context.clearCookies();
    for (const tab of [page, other]) await tab.waitForURL('**/sign-in?next=*');
    if (state === 'shown') {
      letLoad();
      await other.getByLabel('Operator token').first().waitFor();
    }
    await signIn();
    await page.waitForURL('**/audit');
    // What the browser does when its user turns to the other tab.
    const turnTo = "window.dispatchEvent(new Event('visibilitychange'))";
    await other.evaluate(turnTo);
    letLoad();
    await other.waitForURL('**/subscriptions/*');
    // A new session, of which the other tab knows only the cookie.
    await context.addCookies([await newSessionCookie()]);
    const letRead = await holdBack(other, '**/v1/session');
    const refused = other.waitForResponse((response) => response.status() === 403);
    await other.getByRole('button', { name: 'More' }).click();
    await other.getByRole('menuitem', { name: 'Pause' }).click();
    await refused;
    await other.evaluate('new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))');
    // Repeated before the new session is read, it would be refused again.
    const advice = other.getByText('Repeat the action.');
    expect(await advice.count()).toBe(0);
    letRead();
    await advice.waitFor();
    await other.getByRole('button', { name: 'More' }).click();
    await other.getByRole('menuitem', { name: 'Pause' }).click();
    await other.getByText('Paused: nothing is sent').waitFor();
  });
  it('is not undone by the response to a read of the session that was sent before it', async () => {
    const { page, signIn } = await visit();
    // This read may take as long as the sign-in does.
    await page.addInitScript('AbortSignal.timeout = () => new AbortController().signal');
    const signedIn = Promise.withResolvers<void>();
    await page.route('**/v1/session', async (route) => {
      if (route.request().method() !== 'GET') return await route.continue();
      const response = await route.fetch();
      await signedIn.promise;
      await route.fulfill({ response });
    });
    await page.goto('/sign-in');
    await signIn();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const refused = page.waitForEvent('requestfinished', (request) => request.url().endsWith('/v1/session'));
    signedIn.resolve();
    await refused;
    await page.getByRole('link', { name: 'Subscriptions' }).click();
    await page.getByRole('heading', { name: 'Subscriptions' }).waitFor();
  });
  it.each(['//example.com/x', '/%09/example.com/x'])('never redirects to another site: %s', async (next) => {
    const { page, signIn } = await visit();
    await page.goto(`/sign-in?next=${next}`);
    await signIn();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
  it('works with the keyboard alone', async () => {
    const { page } = await visit();
    await page.goto('/sign-in');
    await page.getByLabel('Operator token').first().waitFor();
    await page.keyboard.type(OPERATOR_TOKEN);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});

describe('a subscription', () => {
  it('is created with its types, shows its secret once, is validated, tested, and gets what is published', async () => {
    const to = await ownReceiver();
    const { page } = await atOverview();
    await page.getByRole('link', { name: 'Subscriptions' }).click();
    await page.getByRole('link', { name: 'New subscription' }).first().click();
    await page.getByLabel('Address').fill('http://10.0.0.1/');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('10.0.0.1 is not a public address.').waitFor();
    await page.getByLabel('Address').fill(to.url);
    await page.getByText('Sandbox', { exact: true }).click();
    await page.getByLabel('A selection').check();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Choose at least one').waitFor();
    await page.getByRole('checkbox', { name: 'session.approved' }).check();
    await page.getByLabel('Description').fill('made in the browser');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('it is not shown again').waitFor();
    const secret = await copyWith(page, 'Copy signing secret');
    expect(secret).toMatch(/^whsec_/);
    await page.getByRole('button', { name: /validate the address/ }).click();
    await page.getByText('Active', { exact: true }).waitFor();
    const id = page.url().split('/').at(-1)!;
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    expect(await on.subscription(id)).toMatchObject({
      status: 'active',
      environment: 'sandbox',
      event_types: ['session.approved'],
      description: 'made in the browser',
    });
    expect(await page.content()).not.toContain(secret);

    const calls: string[] = [];
    page.on('request', (request) => void (request.method() === 'POST' && calls.push(new URL(request.url()).pathname)));
    await page.getByRole('button', { name: 'Send test' }).dblclick();
    const drawer = page.getByRole('dialog', { name: 'Test delivery' });
    await drawer.getByText('Attempt 1').waitFor();
    expect(calls).toEqual([`/v1/subscriptions/${id}/test`]);
    await drawer.getByText('Succeeded').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'webhook.test' }).waitFor();
    await on.publish(sampleEvent());
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('link', { name: 'session.approved' }).waitFor();
  });

  it('shows a new secret in a dialog if its page was left before the answer came', async () => {
    const to = await ownReceiver();
    const { page, accessibilityFindings } = await signedIn();
    await page.goto('/subscriptions/new');
    await page.getByLabel('Address').fill(to.url);
    const created = page.waitForResponse((response) => response.request().method() === 'POST');
    const answerCreation = await holdBack(page, '**/v1/subscriptions', 'POST');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.locator('button:disabled', { hasText: 'Cancel' }).waitFor();
    await page.getByRole('link', { name: 'Deliveries' }).first().click();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    answerCreation();
    const dialog = page.getByRole('dialog', { name: `New signing secret of ${to.url}` });
    expect(await copyWith(page, 'Copy signing secret')).toMatch(/^whsec_/);
    expect(await accessibilityFindings()).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'I have copied it' }).click();
    await dialog.waitFor({ state: 'hidden' });
    const { id } = await (await created).json();
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));

    await page.goto('/subscriptions');
    await page.locator(`a[href="/subscriptions/${id}"]`).first().click();
    const answerRotation = await rotateAndGoBack(page);
    await page.getByRole('heading', { name: 'Subscriptions' }).waitFor();
    answerRotation();
    await dialog.getByText('it is not shown again').waitFor();
  });

  it('is paused, holds deliveries, is resumed, edited, gets a new secret, and is deleted after a confirmation', async () => {
    const [to, next] = [await ownReceiver(), await ownReceiver()];
    const { id, secret } = await ownSubscription(to);
    const { page } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    const more = async (item: string) => {
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: item }).click();
    };
    await more('Pause');
    await page.getByText('Paused: nothing is sent').waitFor();
    const { paused_since } = await on.subscription(id);
    await page.getByText('Parked deliveries').waitFor();
    await page.getByText('Paused since').locator(`time[datetime="${paused_since}"]`).waitFor();
    await on.publish(sampleEvent());
    await page.getByText('1 delivery is held, not lost. Resume sends it.').waitFor();
    await page.getByText('about 1 s at 50 a second, once active').waitFor();
    await more('Delete');
    await page.getByText('that have not ended yet, 1 of them held, fail').waitFor();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Active', { exact: true }).waitFor();
    await to.received(1, isDelivery);

    await more('Rotate secret');
    const rotation = page.getByRole('dialog', { name: 'Rotate the signing secret' });
    const answerRotation = await holdBack(page, '**/rotate-secret');
    await rotation.getByRole('button', { name: 'Rotate' }).click();
    await rotation.locator('button:disabled', { hasText: 'Cancel' }).waitFor();
    // Neither a key nor a click beside it loses the secret, also before it is there.
    const tryToClose = async (dialog: Locator) => {
      await page.keyboard.press('Escape');
      await page.mouse.click(5, 400);
      expect(await dialog.getByRole('button', { name: 'Close' }).count()).toBe(0);
    };
    await tryToClose(rotation);
    answerRotation();
    await rotation.locator('[role="alert"]:focus', { hasText: 'it is not shown again' }).waitFor();
    await tryToClose(rotation);
    await rotation.getByText('it is not shown again').waitFor();
    expect(await rotation.textContent()).not.toContain(secret);
    await rotation.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('Previous secret signs until').waitFor();
    await more('Rotate secret');
    await rotation.getByText('A rotation ends it at once').waitFor();
    await rotation.getByRole('button', { name: 'Cancel' }).click();

    await more('Edit');
    const edit = page.getByRole('dialog', { name: 'Edit subscription' });
    // What another operator changes meanwhile stays.
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { description: 'by another operator' });
    await edit.getByLabel('Address').fill(next.url);
    const answerEdit = await holdBack(page, `**/v1/subscriptions/${id}`, 'PATCH');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.locator('button:disabled', { hasText: 'Cancel' }).waitFor();
    // A failure would have no place to be shown.
    await tryToClose(edit);
    answerEdit();
    await edit.waitFor({ state: 'hidden' });
    await page.getByText('Awaiting validation').first().waitFor();
    await page.getByText('by another operator').waitFor();
    await page.getByRole('button', { name: 'Validate' }).click();
    await page.getByText('Active', { exact: true }).waitFor();
    expect(await on.subscription(id)).toMatchObject({ url: next.url, status: 'active' });

    await more('Delete');
    await page.getByRole('button', { name: 'Keep it' }).click();
    expect((await on.subscription(id)).status).toBe('active');
    await more('Delete');
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**/subscriptions');
    expect((await on.operate('GET', `/v1/subscriptions/${id}`)).status).toBe(404);
    const [delivery] = await on.deliveries(`subscription_id=${id}`);
    await page.goto(`/deliveries/${delivery.id}`);
    await page.getByText(`${id} (deleted)`).waitFor();
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('cell', { name: 'Deleted the subscription' }).first().waitFor();
  });

  it('closes its dialogs when the back button leads to another subscription, and still says what has failed', async () => {
    const to = await ownReceiver();
    const [first, second] = [await ownSubscription(to), await ownSubscription(to)];
    const { page } = await signedIn();
    await page.goto(`/subscriptions/${first.id}`);
    await page.getByText(first.id).waitFor();
    await page.getByRole('textbox', { name: 'Search' }).fill(second.id);
    await page.keyboard.press('Enter');
    await page.getByText(second.id).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit subscription' });
    await edit.getByLabel('Address').fill('http://10.0.0.1/');
    const answerEdit = await holdBack(page, `**/v1/subscriptions/${second.id}`, 'PATCH');
    await edit.getByRole('button', { name: 'Save' }).click();
    await page.goBack();
    await page.getByText(first.id).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    // The form can't say it any more.
    await confirmed(page, '10.0.0.1 is not a public address.', async () => answerEdit());
  });

  it('keeps a new secret on the screen when the session ends, until it is copied', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page, context } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Rotate secret' }).click();
    await page.getByRole('button', { name: 'Rotate', exact: true }).click();
    const secret = page.getByText('it is not shown again');
    await secret.waitFor();
    await context.clearCookies();
    // The page has seen that the session is gone.
    await page.getByText('This data may be out of date').first().waitFor();
    expect(await secret.isVisible()).toBe(true);
    // The browser asks before a reload.
    const question = page.waitForEvent('dialog');
    const reloaded = page.evaluate('location.reload()');
    expect((await question).type()).toBe('beforeunload');
    await (await question).dismiss();
    await reloaded;
    expect(await secret.isVisible()).toBe(true);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.waitForURL('**/sign-in?next=*');
  });

  it('keeps what was typed into its form when the session ends, until it is saved after a new sign-in', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page, context } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit subscription' });
    await edit.getByLabel('Description').fill('a long text');
    await context.clearCookies();
    await page.getByText('This data may be out of date').first().waitFor();
    const save = edit.getByRole('button', { name: 'Save' });
    await save.click();
    await edit.getByRole('alert').getByText('Your session has ended. Sign in in another tab').waitFor();
    // It is not about the address.
    expect(await edit.getByLabel('Address').getAttribute('aria-invalid')).not.toBe('true');
    await context.addCookies([await newSessionCookie()]);
    await save.click();
    await edit.getByText('Repeat the action.').waitFor();
    await save.click();
    await edit.waitFor({ state: 'hidden' });
    expect((await on.subscription(id)).description).toBe('a long text');
  });

  it('is not deleted by a confirmation dialog that was open when the session ended', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page, context } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete it' }).waitFor();
    await context.clearCookies();
    await page.getByText('Your session has ended').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.getByLabel('Operator token').first().click();
  });

  it('stays where it is, but marked, if a proxy in front of the console answers with its own page', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page, problems, staleMark, close } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByText(id).waitFor();
    // What comes after the id, and moves it.
    await page.getByText('of 0 attempts').waitFor();
    let status = 200;
    await page.route(/\/v1\/subscriptions\//, (route) =>
      route.fulfill({ status, contentType: 'text/html', body: '<h1>Sign in</h1>' }),
    );
    const marked = (text: string) => staleMark.filter({ hasText: text }).waitFor();
    const place = await page.getByText(id).boundingBox();
    await marked('Something in front of the console answered, such as a proxy (status 200).');
    await confirmed(page, 'The change may have been made: look before you repeat it.', () =>
      page.getByRole('button', { name: 'Send test' }).click(),
    );
    // The default page of a proxy that has lost the console does not mean that the subscription is gone.
    for (status of [404, 502]) await marked(`such as a proxy (status ${status}).`);
    expect(await page.getByText('This subscription no longer exists').count()).toBe(0);
    // What the user is about to click does not move.
    expect(await page.getByText(id).boundingBox()).toEqual(place);
    // The page asks again until it is closed.
    await close();
    expect(problems.every((problem) => problem.startsWith('502 '))).toBe(true);
    problems.length = 0;
  });

  it('is not changed by an action while the browser has no network, nor when the network is back', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page, context, staleMark } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByText(id).waitFor();
    await context.setOffline(true);
    await confirmed(page, 'Cannot reach the console.', () => page.getByRole('button', { name: 'Send test' }).click());
    await staleMark.filter({ hasText: 'Cannot reach the console.' }).waitFor();
    await context.setOffline(false);
    await staleMark.waitFor({ state: 'hidden' });
    expect(await on.deliveries(`subscription_id=${id}`)).toEqual([]);
  });

  it('is deleted after a confirmation, even if the code of dialogs was still loading when it was asked for', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    const letLoad = await holdBack(page, '**/overlays-*.js');
    await page.goto(`/subscriptions/${id}`, { waitUntil: 'commit' });
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    letLoad();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**/subscriptions');
  });

  it('is not deleted by a confirmation dialog that was open when the browser went to another page', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    await page.goto('/subscriptions');
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete it' }).waitFor();
    await page.goForward();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await on.subscription(id)).toMatchObject({ id });
  });

  it('that is deleted elsewhere is said to be gone, and is not asked for again', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    let calls = 0;
    page.on('request', (request) => {
      if (request.url().endsWith(`/v1/subscriptions/${id}`)) calls += 1;
    });
    await page.clock.install();
    await page.goto(`/subscriptions/${id}`);
    await page.getByText(id).waitFor();
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    await page.clock.runFor(2_000);
    await page.getByText('This subscription no longer exists').waitFor();
    const before = calls;
    await page.clock.runFor(60_000);
    expect(calls).toBe(before);
  });

  it('does not lead to another page when its deletion is answered after the operator has left the page', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    const letArrive = await holdBack(page, `**/v1/subscriptions/${id}`, 'DELETE');
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
    await confirmed(page, 'Deleted.', async () => letArrive());
    expect(new URL(page.url()).pathname).toBe('/audit');
  });

  it('with the longest possible url shows its status and its buttons first, and the whole url below', async () => {
    const start = 'https://example.com/';
    const url = `${start}${'a'.repeat(2_048 - start.length)}`;
    const { body } = await on.operate('POST', '/v1/subscriptions', { url, event_types: 'all', environment: 'sandbox' });
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${body.id}`));
    const { page, overflow } = await signedIn({ width: 'narrow' });
    await page.goto(`/subscriptions/${body.id}`);
    const heading = page.getByRole('heading', { level: 1 });
    await heading.getByText(`${url.slice(0, 160)}…`).waitFor();
    await page.getByRole('definition').getByText(url, { exact: true }).waitFor();
    expect(await overflow()).toBe(0);
    await page.goto(`/subscriptions/${body.id}/signature`);
    await page.getByRole('link', { name: start }).waitFor();
    await page.getByLabel('Header Service-Signature').waitFor();
    expect(await overflow()).toBe(0);
  });

  it('with the longest possible url is named by the beginning of it in dialogs, notifications and sentences', async () => {
    const to = await ownReceiver();
    const url = `${to.url}${'a'.repeat(2_048 - to.url.length)}`;
    const start = `${url.slice(0, 160)}…`;
    const { page, overflow, screenshot } = await signedIn({ width: 'narrow' });
    await page.goto('/subscriptions/new');
    await page.getByLabel('Address').fill(url);
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText(`Events go to ${start} once`).waitFor();
    expect(await overflow()).toBe(0);
    await screenshot('long-url-created');
    await page.getByRole('link', { name: 'Later' }).click();
    await page.waitForURL('**/subscriptions/sub_*');
    const id = new URL(page.url()).pathname.split('/').at(-1);
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    const answerRotation = await rotateAndGoBack(page);
    answerRotation();
    const dialog = page.getByRole('dialog', { name: `New signing secret of ${start}` });
    await dialog.getByText('it is not shown again').waitFor();
    expect((await dialog.getByRole('heading').boundingBox())!.width).toBeLessThanOrEqual(390);
    await screenshot('long-url-secret');
    await dialog.getByRole('button', { name: 'I have copied it' }).click();
    for (const action of ['validate', 'pause']) await on.operate('POST', `/v1/subscriptions/${id}/${action}`);
    await page.goto('/');
    const resume = page.getByRole('button', { name: `Resume ${url}` });
    const notice = `Resumed ${start}. If deliveries are held, one goes first.`;
    await confirmed(page, notice, () => resume.click());
    await screenshot('long-url-resumed');
    expect(await overflow()).toBe(0);
  });

  it('has a menu that fits into a low window, as with a zoom of 200 %', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    await page.setViewportSize({ width: 640, height: 400 });
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menu').waitFor();
    // It is placed after it is shown.
    await page.evaluate('new Promise((placed) => requestAnimationFrame(() => requestAnimationFrame(placed)))');
    const menu = (await page.getByRole('menu').boundingBox())!;
    expect(menu.y).toBeGreaterThanOrEqual(0);
    expect(menu.y + menu.height).toBeLessThanOrEqual(400);
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Keep it' }).waitFor();
  });

  it('with the longest possible url is named in a few lines by its deliveries and replays, which copy all of it', async () => {
    const to = await ownReceiver();
    const url = `${to.url}${'a'.repeat(2_048 - to.url.length)}`;
    const { id } = await on.subscribe(url);
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    await on.publish(sampleEvent());
    const [delivery] = await on.deliveries(`subscription_id=${id}`);
    const { body: replay } = await on.operate('POST', '/v1/replays', { subscription_id: id });
    const { page, overflow, screenshot } = await signedIn({ width: 'narrow' });
    for (const path of [`/deliveries/${delivery.id}`, `/replays/${replay.id}`]) {
      await page.goto(path);
      const link = page.getByRole('region', { name: 'Details' }).getByRole('link', { name: to.url });
      expect((await link.boundingBox())!.height).toBeLessThan(80);
      expect(await copyWith(page, 'Copy address')).toBe(url);
      expect(await overflow()).toBe(0);
      await screenshot(`long-url${path.slice(0, 8).replaceAll('/', '-')}`);
    }
    // As large as a window is with a zoom of 200 %.
    await page.setViewportSize({ width: 640, height: 450 });
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    const keep = await page.getByRole('button', { name: 'Keep it' }).boundingBox();
    expect(keep!.y + keep!.height).toBeLessThan(450);
  });

  it('that failures have paused is resumed with all others like it; one that an operator has paused stays paused', async () => {
    const to = await ownReceiver();
    const [failed, other] = [await ownSubscription(to), await ownSubscription(to)];
    for (const { id } of [failed, other]) await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    await on.redis.hset(`${on.prefix}:{0}:subscription:${failed.id}`, 'status_reason', 'consecutive_failures');
    const { page } = await signedIn();
    await page.goto('/subscriptions?status=paused');
    await page.getByRole('button', { name: 'Resume all' }).click();
    await confirmed(page, 'Resumed 1 address. Of what is held', () =>
      page.getByRole('button', { name: 'Resume them' }).click(),
    );
    expect(await on.subscription(failed.id)).toMatchObject({ status: 'active' });
    expect(await on.subscription(other.id)).toMatchObject({ status: 'paused', status_reason: 'operator' });
  });

  it('says of a bulk resume that fails what the calls before have done', async () => {
    // The button is there only if an address is paused.
    await on.operate('POST', `/v1/subscriptions/${(await ownSubscription(await ownReceiver())).id}/pause`);
    const { page, problems } = await signedIn();
    const detail = 'Storage is full: it takes no changes. Nothing was changed.';
    await page.route('**/v1/subscriptions/resume', (route) => {
      const isFirst = !route.request().postData()?.includes('cursor');
      const data = [{ subscription_id: 'sub_1', url: 'https://hooks.acme.example/', result: 'resumed', detail: null }];
      return isFirst
        ? route.fulfill({ json: { data, next_cursor: 'more' } })
        : route.fulfill({ status: 503, json: { detail, code: 'unavailable' } });
    });
    await page.goto('/subscriptions?status=paused');
    await page.getByRole('button', { name: 'Resume all' }).click();
    const done = 'Resumed 1 address. Of what is held for each, one delivery goes first.';
    await confirmed(page, `${done} For the others: ${detail}`, () =>
      page.getByRole('button', { name: 'Resume them' }).click(),
    );
    expect(problems.every((problem) => problem.startsWith('503 '))).toBe(true);
    problems.length = 0;
  });
});

describe('what was typed', () => {
  it.each([
    ['/erasures', 'Value', 'user-4711'],
    ['/replays', 'Event type', 'session.declined'],
    ['/subscriptions/:id/signature', 'Body', '{"id":"evt_1"}'],
  ])('at %s stays when the session ends', async (path, label, text) => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page, context } = await signedIn();
    await page.goto(path.replace(':id', id));
    const field = page.getByLabel(label, { exact: true }).first();
    if (label === 'Event type') {
      await field.click();
      await page.getByRole('option', { name: text }).click();
    } else {
      await field.fill(text);
    }
    await context.clearCookies();
    // The page has seen that the session is gone.
    for (let i = 0; i < 2; i++) await page.waitForResponse((response) => response.status() === 401);
    expect([new URL(page.url()).pathname, await field.inputValue()]).toEqual([path.replace(':id', id), text]);
  });
});
