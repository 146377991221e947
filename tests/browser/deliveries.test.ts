/** The page in a real browser: the overview, deliveries and bulk replays. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import type { NotWell, Overview, Rehearsal } from '@posthorn/operator-api';
import { deregisterWorker, sendHeartbeat } from '@posthorn/store';
import { deliveriesWith, eventually, isDelivery } from '@posthorn/testing';
import type { Page } from 'playwright-core';
import { atEnd, ownReceiver, ownStore, ownWorld } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { confirmed, holdBack } from './browser.ts';
import { atOverview, newSessionCookie, on, ownSubscription, signedIn, visit } from './own-visit.ts';

/** Reloads the page, which gets the overview with these changes, and that not all is well. */
async function showOverview(page: Page, changesOf: (body: Overview) => Partial<Overview>): Promise<void> {
  await page.route('**/v1/overview', async (route) => {
    const { body } = await on.operate('GET', '/v1/overview');
    await route.fulfill({ json: { ...body, all_well: false, ...changesOf(body) } });
  });
  await page.goto('/');
}

describe('the overview', () => {
  it('names a worker that can reach nothing, and since when', async () => {
    const store = await ownStore(on);
    const since = Date.now() - 90_000;
    const worker = {
      id: 'cut-off',
      host: 'far-away',
      pid: 7,
      version: '0',
      startedAtMs: since,
      concurrency: 1,
      addressConcurrency: 1,
      inFlight: 0,
    };
    const beat = () => sendHeartbeat(store, { ...worker, outageSinceMs: since });
    let lastBeat = beat();
    await lastBeat;
    const beating = setInterval(() => {
      lastBeat = beat();
    }, 1_000);
    atEnd(async () => {
      clearInterval(beating);
      await lastBeat;
      await deregisterWorker(store, worker.id);
      // The console computes the overview once a second.
      await eventually('an overview without it', async () => {
        const { body } = await on.operate('GET', '/v1/overview');
        return (body as Overview).workers.every(({ host }) => host !== worker.host);
      });
    });
    const { page, accessibilityFindings } = await atOverview();
    const alert = page.getByRole('alert').filter({ hasText: 'Worker far-away:7 has reached nothing since' });
    await alert.waitFor();
    expect(await alert.locator('time').getAttribute('datetime')).toBe(new Date(since).toISOString());
    expect(await page.getByRole('alert').count()).toBe(1);
    expect(await accessibilityFindings()).toEqual([]);
  });
  it('says what is wrong and what follows, as the API names it, whatever the figures are', async () => {
    const { page, accessibilityFindings } = await signedIn();
    const readOnly = "READONLY You can't write against a read only replica";
    const eviction = 'Redis may evict keys (maxmemory-policy is allkeys-lru), and with them accepted events';
    const later = { kind: 'of_a_later_release', message: 'something else is wrong' } as unknown as NotWell;
    await showOverview(page, (body) => ({
      not_well: [
        { kind: 'worker_clock', message: 'the clock of worker far-away:7 is 600 s slow' },
        { kind: 'no_worker', message: 'no worker is running' },
        { kind: 'writes_refused', message: `Redis refuses changes: ${readOnly}` },
        { kind: 'eviction', message: eviction },
        later,
      ],
      writes_refused: readOnly,
      memory: { used_bytes: 999, capacity_bytes: 1_000 },
      queue: { ...body.queue, oldest_pending_age_ms: HOUR_MS },
      workers: body.workers.map((worker) => ({ ...worker, clock_offset_ms: 600_000 })),
    }));
    const alerts = page.getByRole('alert');
    for (const [title, what] of [
      ['The clock of worker far-away:7 is 600 s slow', 'receivers may refuse its signatures'],
      ['No worker is running', 'nothing is delivered until a worker starts'],
      ['Redis refuses changes', `It says: ${readOnly}.`],
      [eviction, eviction],
      ['Something else is wrong', 'Something else is wrong'],
    ] as const)
      await alerts.filter({ hasText: title }).getByText(what).waitFor();
    expect(await alerts.count()).toBe(5);
    expect(await accessibilityFindings()).toEqual([]);
    await page.unrouteAll({ behavior: 'wait' });
    await showOverview(page, () => ({ not_well: [{ kind: 'memory', message: 'Redis uses 92 % of its memory' }] }));
    const memory = alerts.filter({ hasText: 'Redis uses 92 % of its memory' });
    await memory.getByText('When it is full, ingest refuses new events').waitFor();
  });
  it('says what several hosts that fail with the same or different errors point to', async () => {
    const { page } = await signedIn();
    const incident = { started_at: '2026-11-23T12:00:00.000Z', addresses: 3, subscription_ids: [], host: null };
    const labels = [null, 'dns ENOTFOUND', '503'];
    await showOverview(page, () => ({
      incidents: labels.map((error_label, i) => ({ ...incident, id: `inc_${i}`, error_label })),
    }));
    for (const text of [
      'They are on different hosts, and their errors differ: look at each.',
      'They are on different hosts: probably our side. Most of them: dns ENOTFOUND.',
      'They are on different hosts, and most of these answer: look for what they share, and at what we changed. Most of them: 503.',
    ])
      await page.getByRole('alert').getByText(text).waitFor();
  });
  it('leads from an incident to what can be done: a resume where failures have paused addresses, or a replay', async () => {
    const { page } = await signedIn();
    const started_at = '2026-11-23T12:00:00.000Z';
    const incident = { started_at, addresses: 3_000, subscription_ids: ['sub_1'], host: null, error_label: '503' };
    const problem = {
      subscription_id: 'sub_1',
      url: 'https://one.example/',
      description: '',
      environment: 'both',
      status: 'paused',
      status_reason: 'consecutive_failures',
      failing_since: started_at,
      held: 1,
      verdict: null,
      error: null,
      incident: 'inc_1',
    } as const;
    await showOverview(page, () => ({
      incidents: ['inc_1', 'inc_2'].map((id) => ({ ...incident, id })),
      problems: { total: 3_000, items: [problem] },
    }));
    const links = page.getByRole('alert').filter({ hasText: '3,000 addresses fail at once' }).getByRole('link');
    await links.first().waitFor();
    expect(await links.allTextContents()).toEqual([
      'Once they respond again, resume what failures have paused',
      'Replay what failed at the first 1',
    ]);
    await links.first().click();
    await page.waitForURL('**/subscriptions?status=paused&sort=worst');
  });
  it('leads from many failed attempts to those that fail now', async () => {
    const { page } = await signedIn();
    const message = '76,123 of 76,988 attempts failed in the last 15 minutes';
    await showOverview(page, () => ({ not_well: [{ kind: 'attempts', message }] }));
    const alert = page.getByRole('alert').filter({ hasText: message });
    await alert.getByRole('link', { name: 'Show what fails now, and why' }).click();
    await page.waitForURL('**/tail?failed=true');
  });
  it('keeps the order of the problems while the pointer is among them', async () => {
    const { page } = await signedIn();
    const base = {
      description: '',
      environment: 'both',
      status: 'paused',
      status_reason: 'operator',
      incident: null,
    } as const;
    const problem = { ...base, failing_since: null, held: 1, verdict: null, error: null };
    const items = ['one', 'two'].map((name) => ({
      ...problem,
      subscription_id: name,
      url: `https://${name}.example/`,
    }));
    let isTurned = false;
    await showOverview(page, () => ({ problems: { total: 2, items: isTurned ? [...items].reverse() : items } }));
    const list = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem');
    const order = async () => (await list.getByRole('link', { name: 'example' }).allTextContents()).join(' ');
    await list.last().hover();
    isTurned = true;
    await page.waitForResponse('**/v1/overview');
    await page.waitForResponse('**/v1/overview');
    expect(await order()).toBe('https://one.example/ https://two.example/');
    await page.getByRole('heading', { name: 'Overview' }).hover();
    await eventually('the new order', async () => (await order()) === 'https://two.example/ https://one.example/');
  });
  it('writes large numbers at the axis of its chart as everywhere else', async () => {
    const { page } = await signedIn();
    await showOverview(page, ({ last_hour }) => {
      const series = last_hour.series.map((period) => ({ ...period, succeeded: 1_000_000 }));
      return { last_hour: { ...last_hour, series } };
    });
    const chart = page.getByRole('figure', { name: 'Attempts over the last hour: 60,000,000 succeeded' });
    await chart.getByText('1,000,000', { exact: true }).waitFor();
  });
  it('links to the deliveries that have waited for nearly as long as the oldest one', async () => {
    const { page } = await signedIn();
    const at = '2026-11-23T12:00:00.000Z';
    await showOverview(page, (body) => {
      const queue = { ...body.queue, oldest_pending_age_ms: HOUR_MS };
      const message = 'a delivery has waited 3600 s for its first attempt';
      return { at, queue, not_well: [{ kind: 'pending', message }] };
    });
    const alert = page.getByRole('alert').filter({ hasText: 'A delivery has waited 1 h for its first attempt' });
    const link = alert.getByRole('link', { name: 'Show what has waited for more than 30 min' });
    expect(await link.getAttribute('href')).toBe('/deliveries?status=pending&to=2026-11-23T11:30:00.000Z');
    const listed = page.waitForRequest((request) => request.url().includes('/v1/deliveries?'));
    await link.click();
    expect(new URL((await listed).url()).searchParams.get('to')).toBe('2026-11-23T11:30:00.000Z');
    await page.getByText('No matching deliveries').waitFor();
  });
  it('says that all is well, then which address is paused, refreshes by itself, and links to it', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    const { page } = await atOverview();
    await page.getByText('All is well').waitFor();
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    await on.publish(sampleEvent());
    await page.getByText('1 held').waitFor();
    await page.getByRole('table', { name: 'Workers' }).getByText('of 100').waitFor();
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByText('Paused by an operator.').waitFor();
    await attention.getByRole('link', { name: to.url }).click();
    await page.waitForURL(`**/subscriptions/${id}`);
    await page.goBack();
    await page.getByRole('link', { name: /^Held/ }).click();
    await page.waitForURL('**/deliveries?status=held');
    await page.getByRole('row').getByText('Held').first().waitFor();
  });
  it('shows a failing address with its customer, its error as text and one button, and the address shows the verdict', async () => {
    const body = '{"error":"<b>disk</b> full"}';
    const to = await ownReceiver((_request, response) => response.writeHead(500).end(body));
    const { id } = await on.subscribe(to.url, { description: 'Acme, since 2019' });
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    await on.publishBatch(Array.from({ length: 10 }, () => sampleEvent()));
    const { page, accessibilityFindings } = await atOverview();
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByText('500, “<b>disk</b> full”, 20 times since').waitFor();
    await attention.getByText('Acme, since 2019').waitFor();
    await attention.getByText('Failing', { exact: true }).waitFor();
    await page
      .getByRole('alert')
      .getByText(/^\d+ of \d+ attempts failed in the last 15 minutes$/)
      .waitFor();
    expect(await accessibilityFindings()).toEqual([]);
    await attention.getByRole('link', { name: to.url }).click();
    await page
      .getByRole('alert')
      .filter({ hasText: /^500 since .* UTC\./ })
      .waitFor();
    await page.getByText('20 failed attempts in a row. No attempt has succeeded yet.').waitFor();
    expect(await accessibilityFindings()).toEqual([]);
    await page.goBack();
    to.answerWith(200);
    await attention.getByRole('button', { name: `Send test to ${to.url}`, exact: true }).click();
    await page.waitForURL('**/deliveries/dlv_*');
    await page.getByText('Succeeded').first().waitFor();
  });
});

describe('a delivery', () => {
  it('shows that it waits for its retry, then that it failed; its replay arrives', async () => {
    // The receiver responds to the retry after the page has shown that it is pending.
    const shown = Promise.withResolvers<void>();
    let attempts = 0;
    const to = await ownReceiver((request, response) => {
      if (!isDelivery(request)) response.end();
      else if (++attempts === 1) response.writeHead(500).end();
      else void shown.promise.then(() => response.writeHead(500).end());
    });
    const { id } = await ownSubscription(to);
    const { page } = await signedIn();
    const { body: event } = await on.publish(
      sampleEvent({ data: { id: 's-1', status: 'x', reference: '<img src=x onerror=alert(1)><b>bold</b>', big: 1 } }),
    );
    const [delivery] = await on.deliveries(`event_id=${event.id}`);
    await page.goto('/deliveries');
    const row = page
      .getByRole('row')
      .filter({ hasText: event.id.slice(0, 12) })
      .first();
    await row.getByText('Waiting for retry').waitFor();
    await row.getByRole('link', { name: 'session.approved' }).click();
    await page.waitForURL(`**/deliveries/${delivery.id}`);
    await page.getByText('Response has an error status').first().waitFor();
    await page.getByRole('tab', { name: 'Headers' }).click();
    await page.getByText('As attempt 1 sent them').waitFor();
    shown.resolve();
    await page.getByText('Failed permanently').waitFor();
    // The tab stays open.
    await page.getByText('As attempt 2 sent them').waitFor();
    expect(await page.locator('.mantine-Timeline-item').filter({ hasText: 'Attempt 2' }).count()).toBe(1);

    // The content of a body is shown as text, whatever it contains.
    await page.getByRole('tab', { name: 'Body' }).click();
    const body = await page.getByRole('region', { name: 'body' }).textContent();
    expect(body).toContain('<img src=x onerror=alert(1)><b>bold</b>');
    expect(await page.locator('pre b, pre img').count()).toBe(0);
    await page.getByRole('tab', { name: 'Headers' }).click();
    expect(await page.getByRole('region', { name: 'headers' }).textContent()).toContain(
      `Service-Delivery-Id: ${delivery.id}`,
    );
    await page.getByRole('tab', { name: 'curl' }).click();
    const command = await page.getByRole('region', { name: 'curl command' }).textContent();
    expect(command).toContain(`curl -g -i -X POST '${to.url}'`);
    expect(command).toContain('Service-Signature: t=');

    to.answerWith(200);
    const before = to.requests.length;
    await confirmed(page, 'Replayed: this is the new delivery.', () =>
      page.getByRole('button', { name: 'Replay' }).click(),
    );
    await page.getByText('Succeeded').first().waitFor();
    await to.received(before + 1);
    await page.getByRole('link', { name: delivery.id }).first().click();
    await page.getByText('Replayed as').waitFor();
    await page.getByRole('link', { name: event.id }).click();
    await page.getByRole('heading', { name: 'Deliveries (2)' }).waitFor();
    expect(await page.getByRole('region', { name: 'event', exact: true }).textContent()).not.toContain('accepted_at');
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
  });

  it('has a curl command that sends the same request with a valid signature', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    const made = (await on.operate('POST', `/v1/subscriptions/${id}/test`)).body;
    await to.received(1, isDelivery);
    const { page } = await signedIn();
    await page.goto(`/deliveries/${made.id}`);
    await page.getByRole('tab', { name: 'curl' }).click();
    const command = await page.getByRole('region', { name: 'curl command' }).textContent();
    await promisify(execFile)('sh', ['-c', `${command} -s -o /dev/null`]);
    const [first, second] = await to.received(2, isDelivery);
    expect(second!.body).toBe(first!.body);
    expect(second!.headers['service-delivery-id']).toBe(made.id);
  });

  it('is found by any id in the search box, and by filters that stay in the URL', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    const { body: event } = await on.publish(sampleEvent());
    const [delivery] = await on.deliveries(`event_id=${event.id}`);
    const { page } = await atOverview();
    for (const [wanted, path] of [
      [delivery.id, `deliveries/${delivery.id}`],
      [id, `subscriptions/${id}`],
      [event.id, `events/${event.id}`],
    ] as const) {
      await page.getByRole('textbox', { name: 'Search' }).fill(wanted);
      await page.keyboard.press('Enter');
      await page.waitForURL(`**/${path}`);
    }
    // Not the form of an id that Posthorn makes: the beginning of one, or what a publisher chose.
    for (const other of [id.slice(0, 12), `sub_${'x'.repeat(24)}`]) {
      await page.getByRole('textbox', { name: 'Search' }).fill(other);
      await page.keyboard.press('Enter');
      await page.waitForURL(`**/search?q=${other}`);
    }
    await page.route('**/v1/events/nonsense', (route) => route.fulfill({ status: 429, json: { detail: 'Too many.' } }));
    await page.getByRole('textbox', { name: 'Search' }).fill('nonsense');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: "The event can't be shown" }).waitFor();
    expect(await page.getByText('No event has this value').count()).toBe(0);
    await page.unroute('**/v1/events/nonsense');
    await page.getByText('No event has this value').waitFor();
    // Whichever is answered first: the search for an event with this id, or that in the fields of events.
    const answer = await holdBack(page, '**/v1/timeline?*');
    const noEvent = page.waitForResponse('**/v1/events/nothing');
    await page.goto('/search?q=nothing');
    await (await noEvent).finished();
    await page.getByText('No url or description of a subscription has this text').waitFor();
    answer();
    await page.getByText('No event has this value').waitFor();
    await page.goto('/deliveries');
    await page.getByRole('textbox', { name: 'Event id' }).fill(event.id);
    await page.waitForURL(`**/deliveries?event_id=${event.id}`);
    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: 'Failed' }).click();
    await page.getByText('No matching deliveries').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.waitForURL('**/deliveries');
    await page.getByRole('combobox', { name: 'Error' }).click();
    await page.getByRole('option', { name: 'The name could not be resolved' }).click();
    await page.waitForURL((url) => url.search === '?status=failed&error=dns');
    await page.getByText('No matching deliveries').waitFor();
    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: 'Succeeded' }).click();
    await page.waitForURL((url) => url.search === '?status=succeeded');
    await page.locator(`a[href="/deliveries/${delivery.id}"]`).first().waitFor();
    await page.getByRole('combobox', { name: 'Environment' }).click();
    await page.getByRole('option', { name: 'Production' }).click();
    await page.waitForURL((url) => url.search === '?status=succeeded&environment=production');
    await page.getByText('No matching deliveries').waitFor();
  });
});

describe('a bulk replay', () => {
  it('of one delivery does not speak of several', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await ownSubscription(to);
    await on.publish(sampleEvent());
    await eventually('it to fail', async () => {
      return (await on.deliveries(`subscription_id=${id}&status=failed`)).length === 1;
    });
    to.answerWith(200);
    const { page } = await signedIn();
    await page.goto(`/replays?subscription_id=${id}`);
    await page.getByRole('button', { name: 'Replay 1 failed delivery' }).click();
    await page.waitForURL('**/replays/rpl_*');
    await page.getByText('Done: 1 delivered.').waitFor();
  });

  it('shows how many deliveries it will replay, its progress and its result', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await ownSubscription(to);
    await on.publishBatch(Array.from({ length: 30 }, () => sampleEvent()));
    await eventually('all to fail', async () => {
      return (await on.deliveries(`subscription_id=${id}&status=failed&limit=250`)).length === 30;
    });
    to.answerWith(200);
    const before = to.requests.length;
    const { page, screenshot } = await signedIn();
    await page.goto('/replays');
    await page.getByRole('combobox', { name: 'Addresses' }).click();
    await page.getByRole('option', { name: to.url }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Replay 30 failed deliveries' }).click();
    await page.waitForURL('**/replays/rpl_*');
    // The canary of 5 first, then the others, until all have arrived.
    await page.getByText('Done: all 30 delivered.').waitFor();
    expect(await page.getByRole('progressbar', { name: 'Progress' }).getAttribute('aria-valuenow')).toBe('100');
    await to.received(before + 30);
    await screenshot('replay-done');
    await page.getByRole('link', { name: 'Delivered' }).click();
    await page.waitForURL('**/deliveries?replay_id=rpl_*');
    await page.getByText('Made by bulk replay').waitFor();
    await eventually('exactly its deliveries', async () => {
      return (await page.getByRole('table').getByText('Succeeded').count()) === 30;
    });
    await page.goto('/replays');
    await page.getByRole('cell', { name: '30 of 30' }).waitFor();
    await page.getByRole('cell', { name: '30 delivered', exact: true }).waitFor();
  });
  it('of several addresses is rehearsed first, and its outcome is shown as one', async () => {
    const receivers = [await ownReceiver(deliveriesWith(500)), await ownReceiver(deliveriesWith(500))];
    const ids = [(await ownSubscription(receivers[0]!)).id, (await ownSubscription(receivers[1]!)).id];
    await on.publishBatch(Array.from({ length: 8 }, () => sampleEvent()));
    for (const id of ids)
      await eventually('all to fail', async () => {
        return (await on.deliveries(`subscription_id=${id}&status=failed&limit=250`)).length === 8;
      });
    // A rehearsal knows no duration, and warns of nothing, before the worker has saved what it counted.
    await eventually('the counts of both', async () => {
      const { body } = await on.operate('POST', '/v1/replays/rehearse', { subscription_ids: ids });
      return body.addresses.every(({ expected_s, warnings }: Rehearsal['addresses'][number]) => {
        return expected_s !== null && warnings.length > 0;
      });
    });
    receivers[0]!.answerWith(200);
    const { page, screenshot } = await signedIn();
    await page.goto(`/replays?${ids.map((id) => `subscription_id=${id}`).join('&')}`);
    await page.getByRole('button', { name: 'Replay 16 failed deliveries' }).waitFor();
    await page.getByRole('button', { name: 'Rehearse' }).click();
    await page.getByText(/^It would send 16 deliveries to 2 addresses, 10 of them first, in about /).waitFor();
    const rehearsal = page.getByRole('region', { name: 'Rehearsal' });
    await rehearsal.getByText('Its attempts still fail as these deliveries did: 500.').first().waitFor();
    await screenshot('replay-rehearsed');
    // What was rehearsed is not what the form says now.
    await page.getByRole('checkbox', { name: 'Send 5' }).uncheck();
    await rehearsal.waitFor({ state: 'hidden' });
    await page.getByRole('checkbox', { name: 'Send 5' }).check();
    await page.getByRole('button', { name: 'Replay 16 failed deliveries' }).click();
    await page.waitForURL('**/replays/rpb_*');
    await page.getByRole('heading', { name: 'Bulk replay of 2 addresses' }).waitFor();
    await page.getByText('1 halted, because an attempt of the canary failed').waitFor();
    await page.getByRole('cell', { name: '8 delivered', exact: true }).waitFor();
    await screenshot('replay-batch-halted');
    await page.route('**/v1/replay-batches/rpb_*', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), skipped: 1_234 } });
    });
    await page.getByText('1,234 skipped: another replay is under way or has succeeded').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    const halted = page.getByRole('link', { name: receivers[1]!.url });
    const others = page.getByRole('link', { name: 'The other addresses' });
    await halted.click();
    await others.click();
    const cancelBatch = await holdBack(page, '**/v1/replay-batches/*/cancel');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('button:disabled', { hasText: 'Cancel' }).waitFor();
    await halted.click();
    await page.getByText('Halted: an attempt of the canary failed.').waitFor();
    // The call that is under way is about the batch.
    expect(await page.getByRole('button', { name: 'Cancel' }).isEnabled()).toBe(true);
    await confirmed(page, 'Cancelled: nothing else begins.', async () => cancelBatch());
    await page.getByText('Cancelled after 5 of 8.').waitFor();
    await others.click();
    await page.getByRole('cell', { name: 'Cancelled' }).waitFor();
    await halted.click();
    await page.getByRole('link', { name: 'The other addresses' }).click();
    await page.waitForURL('**/replays/rpb_*');
  });
  it('shows a rehearsal only while the form is as it was when the rehearsal was requested', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await ownSubscription(to);
    await on.publish(sampleEvent());
    const { page } = await signedIn();
    const letArrive = await holdBack(page, '**/v1/replays/rehearse');
    await page.goto(`/replays?subscription_id=${id}`);
    await page.getByRole('button', { name: 'Replay 1 failed delivery' }).waitFor();
    // What fails meanwhile is replayed too.
    await on.publish(sampleEvent());
    await page.getByRole('button', { name: 'Replay 2 failed deliveries' }).waitFor();
    await page.getByRole('button', { name: 'Rehearse' }).click();
    await page.getByRole('checkbox', { name: 'Send 5' }).uncheck();
    const loading = page.locator('button[data-loading]');
    await loading.waitFor();
    letArrive();
    await loading.waitFor({ state: 'detached' });
    const rehearsal = page.getByRole('region', { name: 'Rehearsal' });
    expect(await rehearsal.count()).toBe(0);
    await page.getByRole('checkbox', { name: 'Send 5' }).check();
    await rehearsal.waitFor();
  });
  it('of addresses of both environments begins with a choice of one', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const fields = [{ environment: 'sandbox' }, { environment: 'production' }, {}];
    const subscriptions = await Promise.all(fields.map((one) => on.subscribe(to.url, one)));
    const ids = subscriptions.map(({ id }) => id);
    for (const id of ids) atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    await on.publish(sampleEvent());
    await on.publish(sampleEvent({ environment: 'production' }));
    for (const [i, count] of [1, 1, 2].entries())
      await eventually('all to fail', async () => {
        return (await on.deliveries(`subscription_id=${ids[i]}&status=failed`)).length === count;
      });
    const { page } = await signedIn();
    await page.goto(`/replays?${ids.map((id) => `subscription_id=${id}`).join('&')}`);
    await page.getByText('replay them separately').waitFor();
    expect(await page.getByRole('button', { name: /^Replay/ }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Keep those for production' }).click();
    await page.getByRole('button', { name: 'Replay 3 failed deliveries' }).click();
    await page.getByRole('heading', { name: 'Bulk replay of 2 addresses' }).waitFor();
  });
  it('of addresses of which one is paused begins with a choice of the others', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const [active, paused] = [await ownSubscription(to), await ownSubscription(to)];
    await on.publish(sampleEvent());
    await eventually('both to fail', async () => {
      const failed = (await on.deliveries('status=failed')).map(
        (failure: { subscription_id: string }) => failure.subscription_id,
      );
      return failed.includes(active.id) && failed.includes(paused.id);
    });
    await on.operate('POST', `/v1/subscriptions/${paused.id}/pause`);
    const { page } = await signedIn();
    await page.goto(`/replays?subscription_id=${active.id}&subscription_id=${paused.id}`);
    await page.getByText('1 of 2 addresses is not active').waitFor();
    await page.getByRole('button', { name: 'Keep the active ones' }).click();
    await page.getByRole('button', { name: 'Replay 1 failed delivery' }).click();
    await page.getByRole('heading', { name: 'Bulk replay', exact: true }).waitFor();
  });

  it('halts when its canary fails, and is continued and cancelled with a button', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await ownSubscription(to);
    await on.publishBatch(Array.from({ length: 20 }, () => sampleEvent()));
    await eventually('all to fail', async () => {
      return (await on.deliveries(`subscription_id=${id}&status=failed&limit=250`)).length === 20;
    });
    const { page, screenshot } = await signedIn();
    await page.goto(`/replays?subscription_id=${id}`);
    await page.getByRole('combobox', { name: 'Error' }).click();
    await page.getByRole('option', { name: 'The connection failed' }).click();
    await page.getByText('No failed deliveries match.').waitFor();
    await screenshot('replay-filters');
    await page.getByRole('combobox', { name: 'Error' }).click();
    await page.getByRole('option', { name: 'Response has an error status' }).click();
    await page.getByRole('button', { name: 'Replay 20 failed deliveries' }).click();
    await page.getByText('Halted: an attempt of the canary failed.').waitFor();
    await screenshot('replay-halted');
    // More wait than may be in flight to an address.
    const answer = Promise.withResolvers<void>();
    to.answerWith((_, response) => void answer.promise.then(() => response.end()));
    await confirmed(page, 'The replay goes on.', () => page.getByRole('button', { name: 'Continue' }).click());
    await page.getByText('Sending:').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Cancelled after 20 of 20.').waitFor();
    await page.getByRole('link', { name: 'Cancelled' }).click();
    await page.waitForURL((url) => url.searchParams.get('error') === 'cancelled');
    await page.getByRole('cell', { name: 'Its bulk replay was cancelled' }).first().waitFor();
    answer.resolve();
  });
});

describe('deliveries that wait for a retry', () => {
  it('are tried now after a confirmation: all that match the filters', async () => {
    const ofRetries = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
    const to = await ownReceiver();
    to.answerWith((request, response) => response.writeHead(isDelivery(request) ? 500 : 200).end());
    const [one, other] = [await ofRetries.subscribe(to.url), await ofRetries.subscribe(to.url)];
    for (let i = 0; i < 2; i++) await ofRetries.publish(sampleEvent());
    const waiting = async () => (await ofRetries.deliveries('status=waiting_for_retry')).length;
    await eventually('all to wait', async () => (await waiting()) === 4);
    to.answerWith(200);
    const { page, context, accessibilityFindings } = await visit();
    await context.addCookies([await newSessionCookie(ofRetries)]);
    await page.goto(`${ofRetries.consoleUrl}/deliveries?status=waiting_for_retry&subscription_id=${one.id}`);
    await page.getByRole('button', { name: 'Try all now' }).click();
    await page.getByText('Deliveries to addresses that are not active keep').waitFor();
    expect(await accessibilityFindings()).toEqual([]);
    await confirmed(page, 'The next attempts of 2 deliveries will be made now.', () =>
      page.getByRole('button', { name: 'Try them now' }).click(),
    );
    await eventually('those of one to succeed', async () => (await waiting()) === 2);
    expect(await ofRetries.deliveries(`status=waiting_for_retry&subscription_id=${other.id}`)).toHaveLength(2);
    await page.goto(`${ofRetries.consoleUrl}/deliveries`);
    await page.getByRole('table').waitFor();
    expect(await page.getByRole('button', { name: 'Try all now' }).count()).toBe(0);
  });
});
