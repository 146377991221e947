/** The command line as an operator uses it, against a complete Posthorn. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { deliveriesWith, eventually, isDelivery, type Receiver, startReceiver } from '@posthorn/testing';
import { callApi } from '../scripts/api-client.ts';
import { ownDir, ownReceiver, ownWorld } from './own.ts';
import { ownPosthorn, POSTHORN, runPosthorn } from './run-posthorn.ts';
import { OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent, type World } from './world.ts';

let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000' } });
  to = await ownReceiver();
});

const posthorn = (args: string[], env?: Record<string, string>, input?: string | Buffer) =>
  runPosthorn(on.consoleUrl, args, env, input);
async function json(...args: string[]) {
  const { code, out, err } = await posthorn([...args, '--json']);
  // A list that is cut says so, also for programs.
  expect([code, err.replace(/^There may be more .*\n$/, '')]).toEqual([0, '']);
  return JSON.parse(out);
}

describe('posthorn', () => {
  it('says why an event was not delivered to an address, and what to do', async () => {
    const { id } = await on.subscribe(to.url, { environment: 'production' });
    const { body: event } = await on.publish(sampleEvent());
    const { code, out, err } = await posthorn(['why', event.id, id]);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^answer +It receives production events; this is a sandbox event\.$/m);
    expect(out).toMatch(/^next step +Change its environment/m);
    expect(out).toContain(`${to.url} (active)`);
    expect(await json('why', event.id, id)).toMatchObject({ reason: 'other_environment' });
  });

  it('ends without an error when nobody reads its output any more', () => {
    const command = `${process.execPath} ${POSTHORN} completion bash`;
    const { status, stderr } = spawnSync('bash', ['-c', `exec 3> >(true); wait $!; ${command} >&3`], {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    expect([status, stderr]).toEqual([0, '']);
  });

  it('has its exit code also when nobody reads its output any more', async () => {
    const file = join(ownDir(), 'subscriptions.yaml');
    writeFileSync(file, `subscriptions: [{ key: acme, url: '${to.url}' }]`);
    const command = `${process.execPath} ${POSTHORN} apply --dry-run -f ${file}`;
    const child = spawn('bash', ['-c', `exec 3> >(true); wait $!; ${command} >&3`], {
      env: { ...process.env, POSTHORN_URL: on.consoleUrl, POSTHORN_TOKEN: OPERATOR_TOKEN },
      stdio: 'ignore',
    });
    expect(await once(child, 'close')).toEqual([2, null]);
  });

  it('says that its output cannot be written, without a stack', async () => {
    const command = `exec ${process.execPath} ${POSTHORN} completion bash > /dev/full`;
    const child = spawn('bash', ['-c', command], { stdio: ['ignore', 'ignore', 'pipe'] });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    expect([code, said]).toEqual([1, expect.stringMatching(/^Cannot write the output: ENOSPC.*\n$/)]);
  });

  it('finds events by session, reference or user', async () => {
    const data = { id: 'ses\u001b[31m-1', status: 'approved', reference: 'order 7' };
    const { body: event } = await on.publish(sampleEvent({ data }));
    const { code, out, err } = await posthorn(['timeline', 'order 7']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain(event.id);
    // What a publisher chose can't steer the terminal.
    expect(out).not.toContain('\u001b[31m');
    expect((await json('timeline', 'order 7', '--by', 'reference')).data).toMatchObject([{ id: event.id }]);
    expect((await posthorn(['timeline', 'order 7', '--by', 'user'])).out).toBe('No event has this value.\n');
  });

  it('counts the deliveries of an event by status', async () => {
    for (const path of ['a', 'b', 'c']) await on.subscribe(`${to.url}${path}`);
    const { body } = await on.publish(sampleEvent({ data: { id: 'ses-3', status: 'approved' } }));
    const ended = async () => (await on.deliveries(`event_id=${body.id}&status=succeeded`)).length === 3;
    await eventually('all to arrive', ended);
    expect((await posthorn(['timeline', 'ses-3'])).out).toMatch(/ 3 succeeded +/);
    await on.publish(sampleEvent({ data: { id: 'ses-3', status: 'approved' } }));
    const cut = await posthorn(['timeline', 'ses-3', '--limit', '1', '--json']);
    expect(JSON.parse(cut.out)).toMatchObject({ data: [{}], has_more: true, search: 'on' });
    expect(cut.err).toBe('There may be older events that match.\n');
  });

  it('counts what an erasure would erase, starts it, and names it in the audit trail', async () => {
    const session = 'ses-to-erase';
    await on.publish(sampleEvent({ data: { id: session, status: 'approved' } }));
    const counted = await posthorn(['erase', '--session', session]);
    expect(counted).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Nothing was erased.') });
    expect((await posthorn(['erase', '--session', `${session} `])).err).toContain('white space, which counts');
    // It takes a minute, until no attempt that began before it can be in flight.
    const { id } = await json('erase', '--session', session, '--yes', '--no-wait');
    expect((await posthorn(['erasures', '--session', session])).out).toContain(id);
    expect((await posthorn(['audit'])).out).toMatch(new RegExp(`erasure\\.started +${id} `));
  });

  it('shows the trace of an event that has one', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const { id } = await on.subscribe(to.url);
    const { body: untraced } = await on.publish(sampleEvent({ data: { id: 'ses-1', status: 'approved' } }));
    expect((await posthorn(['why', untraced.id, id])).out).not.toContain('trace');
    expect((await posthorn(['timeline', 'ses-1'])).out).not.toContain('trace');
    const { body: traced } = await callApi('POST', `${on.ingestUrls[0]}/v1/events`, {
      token: PUBLISHER_KEY,
      body: sampleEvent({ data: { id: 'ses-1', status: 'approved' } }),
      headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    });
    expect((await posthorn(['why', traced.id, id])).out).toMatch(new RegExp(`^trace +${traceId}$`, 'm'));
    expect((await json('why', traced.id, id)).event.trace_id).toBe(traceId);
    const { out } = await posthorn(['timeline', 'ses-1']);
    expect(out).toMatch(/^accepted .* trace *$/m);
    expect(out).toMatch(new RegExp(`${traced.id} +${traceId} *$`, 'm'));
    expect(out).toMatch(new RegExp(`${untraced.id} +- *$`, 'm'));
    const { data } = await json('timeline', 'ses-1');
    expect(data.map(({ trace_id }: { trace_id: string | null }) => trace_id)).toEqual([traceId, null]);
  });

  it('says with which status an acceptable address responded to its validation', async () => {
    const { id } = await json('create', (await ownReceiver((_, response) => void response.writeHead(400).end())).url);
    expect((await posthorn(['validate', id])).out).toContain('The address is acceptable: status 400.');
  });

  it('says why an address could not be validated', async () => {
    const gone = await startReceiver();
    await gone.close();
    const { id } = await json('create', gone.url);
    const { code, out } = await posthorn(['validate', id]);
    expect(code).toBe(0);
    expect(out).toContain('The address is unreachable: connection ECONNREFUSED.');
  });

  it('creates, validates, tests, pauses, resumes, changes and deletes subscriptions and rotates their secrets', async () => {
    const created = await json(
      'create',
      to.url,
      '--types',
      'session.approved,session.expired',
      '--description',
      'mine',
    );
    expect(created).toMatchObject({
      url: to.url,
      event_types: ['session.approved', 'session.expired'],
      description: 'mine',
      secret: expect.stringMatching(/^whsec_/),
    });
    const { id } = created;
    expect((await json('validate', id)).data).toMatchObject([{ id, status: 'active' }]);
    expect(await json('test', id)).toMatchObject({ event_type: 'webhook.test', status: 'succeeded', attempt_count: 1 });
    expect((await json('pause', id)).data).toMatchObject([{ status: 'paused', status_reason: 'operator' }]);
    expect((await json('list', '--status', 'paused')).data).toMatchObject([{ id }]);
    expect((await json('subscriptions', '--sort', 'worst')).data).toMatchObject([{ id }]);
    expect((await json('subscriptions', '--health', 'failing')).data).toEqual([]);
    expect((await json('resume', '--reason', 'consecutive_failures')).data).toEqual([]);
    expect((await json('resume', '--reason', 'operator', '--search', 'mine')).data).toMatchObject([
      { subscription_id: id, result: 'resumed' },
    ]);
    const paused = await posthorn(['pause', 'sub_0123456789abcdefghijAA', id]);
    expect([paused.code, paused.out]).toEqual([1, expect.stringContaining(id)]);
    expect(paused.err).toMatch(/^sub_0123456789abcdefghijAA: There is no such subscription/);
    const resumed = await posthorn(['resume', '--reason', 'operator']);
    expect([resumed.code, resumed.out]).toEqual([
      0,
      expect.stringMatching(/^Resumed 1\. .* see posthorn list --status paused\.$/m),
    ]);
    expect((await json('resume', id)).data).toMatchObject([{ status: 'active' }]);
    const several = await posthorn(['resume', id, 'sub_0123456789abcdefghijAA']);
    expect(several).toMatchObject({ code: 1, err: '1 of 2 could not be resumed.\n' });
    expect(several.out).toMatch(/ unchanged .*\n.* not_found$/m);
    for (const wrong of [
      [],
      [id, '--reason', 'operator'],
      [id, '--search', 'mine'],
      ['--reason', 'operator', '--search', ''],
      ['--reason', 'unreachable'],
    ])
      expect((await posthorn(['resume', ...wrong])).code).toBe(1);
    expect((await json('rotate', id, '--overlap', '1h')).secret).not.toBe(created.secret);
    // The receiver may still have the first one.
    const again = await posthorn(['rotate', id]);
    expect([again.code, again.err]).toEqual([
      1,
      expect.stringMatching(/^The secret before the current one .*--yes\.\n$/),
    ]);
    expect((await json('rotate', id, '--yes')).secret).toMatch(/^whsec_/);
    expect(await json('update', id, '--types', 'all')).toMatchObject({ event_types: 'all' });
    expect(await json('show', id)).toMatchObject({ id, description: 'mine' });
    const shown = (await posthorn(['show', id])).out;
    expect(shown).toMatch(/^health:\n {2}state +healthy\n(.*\n)* {2}recent:\n {4}attempts +\d/m);
    expect((await json('audit', '--subscription', id, '--limit', '3')).data).toHaveLength(3);
    expect(await json('overview')).toMatchObject({ subscriptions: { active: 1 } });
    const moved = await posthorn(['update', id, '--url', `${to.url}moved`]);
    expect(moved.out).toContain(`Next: posthorn validate ${id}\n`);
    const asked = await posthorn(['delete', id]);
    expect([asked.code, asked.err]).toEqual([
      1,
      `Delete ${id} (${to.url}moved)? Not an interactive terminal; pass --yes.\n`,
    ]);
    expect(await posthorn(['delete', id, '--yes'])).toEqual({ code: 0, out: `Deleted ${id}.\n`, err: '' });
    expect(await posthorn(['list'])).toMatchObject({
      code: 0,
      out: 'No subscriptions yet. To create one: posthorn create <url>\n',
    });
    expect((await posthorn(['list', '--health', 'failing'])).out).toBe('No matching subscription is failing.\n');
    expect((await posthorn(['list', 'acme'])).out).toBe('No matching subscriptions.\n');
  });

  it('replays one delivery or all of an address, and shows deliveries and events', async () => {
    to.answerWith(deliveriesWith(500));
    const { id } = await on.subscribe(to.url);
    await on.publishBatch(Array.from({ length: 3 }, () => sampleEvent()));
    await eventually('all to fail', async () => (await on.deliveries('status=failed')).length === 3);
    to.answerWith(200);
    const failed = (await json('deliveries', '--subscription', id, '--status', 'failed', '--limit', '2')).data;
    expect(failed).toHaveLength(2);
    expect(await json('replay', failed[0].id)).toMatchObject({ replay_of: failed[0].id });
    expect(await json('show', failed[0].event_id)).toMatchObject({ id: failed[0].event_id, type: 'session.approved' });
    for (const shown of [failed[0].id, failed[0].event_id])
      expect((await posthorn(['show', shown])).out).toMatch(
        new RegExp(`subscription_id[= ]+${id}\\s+address[= ]+${to.url}`),
      );
    const { code, out } = await posthorn(['--json', 'replay', id]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ status: 'done', total: 3, replayed: 2, skipped: 1 });
    const replay = await json('replay', id, '--type', 'session.approved', '--error', 'status', '--follow');
    expect(replay).toMatchObject({ subscription_id: id, filter: { event_type: 'session.approved', error: 'status' } });
    const ofFirst = await json('deliveries', '--replay', JSON.parse(out).id);
    expect(ofFirst.data).toHaveLength(2);
    const refused = await posthorn(['cancel', replay.id]);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('none of its deliveries waits')]);
    expect(await json('replay', id, '--no-wait')).toMatchObject({ subscription_id: id });
    const table = (await posthorn(['deliveries', '--status', 'failed', '--from', '1h'])).out;
    expect(table.split('\n')[0]).toMatch(/^id +created +type +status +attempts +event +customer +address/);
    expect(table).toContain('failed (status)');
    expect(table).toContain(to.url);
    expect((await json('deliveries', '--from', '1h', '--type', 'session.approved')).data.length).toBeGreaterThan(3);
    expect((await json('deliveries', '--to', '1h')).data).toEqual([]);
    const failedWith = async (error: string) => (await json('deliveries', '--error', error)).data.length;
    expect([await failedWith('status'), await failedWith('timeout')]).toEqual([3, 0]);
    const contradiction = await posthorn(['deliveries', '--error', 'status', '--status', 'held']);
    expect([contradiction.code, contradiction.err]).toEqual([1, expect.stringContaining('status: Expected failed')]);
    expect((await posthorn(['replays', '--subscription', id])).out).toContain(to.url);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    const audit = (await posthorn(['audit', '--action', 'subscription.paused', '--limit', '1'])).out;
    expect(audit).toMatch(/^at +operator +action +about +address +summary/);
    expect(audit).toMatch(new RegExp(`${id} +${to.url} +Paused the address`));
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
  });

  it('replays the failed deliveries of several addresses, and follows all of them', async () => {
    to.answerWith(deliveriesWith(500));
    const ids = [(await on.subscribe(to.url)).id, (await on.subscribe(`${to.url}other`)).id];
    await on.publishBatch(Array.from({ length: 3 }, () => sampleEvent()));
    await eventually('all to fail', async () => (await on.deliveries('status=failed')).length === 6);
    const addresses = ids.flatMap((id) => ['--address', id]);
    const failing = await posthorn(['replay', ...addresses, '--canary', '--follow']);
    expect([failing.code, failing.err]).toEqual([0, '']);
    expect(failing.out).toMatch(/^status +done$/m);
    expect(failing.out).toContain(`address=${to.url}other status=done replayed=3/3 delivered=0 failed=3`);
    to.answerWith(200);
    const batch = await json('replay', ...addresses, '--follow');
    expect(batch).toMatchObject({ addresses: 2, status: 'done', total: 12, replayed: 6, outcome: { delivered: 6 } });
    expect((await json('replays', '--batch', batch.id)).data).toHaveLength(2);
    expect((await json('cancel', batch.id)).replays).toHaveLength(2);
    const table = (await posthorn(['replays', '--batch', batch.id])).out;
    expect(table.split('\n')[0]).toMatch(/ delivered +failed +waiting +cancelled +operator/);
    expect((await posthorn(['continue', batch.id])).err).toContain(`posthorn replays --batch ${batch.id}`);
    expect((await json('show', batch.id)).id).toBe(batch.id);
    const rehearsal = await posthorn(['replay', ...addresses, '--dry-run']);
    expect(rehearsal.out).toMatch(/^replays +0\nskips +12\nsends first +0\ntakes +about 0 s\naddresses:\n/);
    expect(rehearsal.out).toMatch(/\nNothing was replayed\.\n$/);
    expect(await json('replay', ids[0]!, '--dry-run')).toMatchObject({ count: 0, skipped: 6 });
    expect((await json('replays', '--subscription', ids[0]!)).data).toHaveLength(2);
    const refused = await posthorn(['replay', '--address', ids[0]!, '--address', 'x']);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('subscription_ids.1: Expected the id') });
    for (const args of [['replay'], ['replay', ids[0]!, '--address', ids[1]!]])
      expect((await posthorn(args)).err).toBe('Pass either one id, or --address, or --all.\n');
  });

  it('replays what failed at all active addresses, in batches of one environment', async () => {
    to.answerWith(deliveriesWith(500));
    const urls = Array.from({ length: 51 }, (_, i) => `${to.url}${i}`);
    const [first] = await Promise.all(urls.map((url) => on.subscribe(url)));
    await on.subscribe(`${to.url}sandbox`, { environment: 'sandbox' });
    const paused = await on.subscribe(`${to.url}paused`);
    await on.publish(sampleEvent());
    await eventually('all to fail', async () => (await on.deliveries('status=failed&limit=100')).length === 53);
    await on.operate('POST', `/v1/subscriptions/${paused.id}/pause`);
    await on.subscribe(`${to.url}later`);
    const rehearsed = await posthorn(['replay', '--all', '--failed-from', '1h', '--dry-run']);
    expect(rehearsed.out).toBe('replays    52\nskips      0\naddresses  52\nNothing was replayed.\n');
    to.answerWith(200);
    expect((await json('replay', '--all', '--from', '1h', '--type', 'session.expired')).data).toEqual([]);
    const { data } = await json('replay', '--all', '--from', '1h');
    expect(data.map((batch: { addresses: number }) => batch.addresses).sort()).toEqual([1, 1, 50]);
    await eventually('all to arrive', async () => (await on.deliveries('status=succeeded&limit=100')).length === 52);
    expect((await on.deliveries(`status=failed&subscription_id=${paused.id}`)).length).toBe(1);
    const again = await posthorn(['replay', '--all', '--failed-from', '1h']);
    expect([again.code, again.out]).toEqual([0, 'No failed deliveries match.\n']);
    for (const [args, message] of [
      [['--all'], '--all needs --from or --failed-from, such as --failed-from 3h.'],
      [['--all', '--from', '1h', '--follow'], '--all does not follow: see "posthorn replays".'],
      [['--all', first!.id], 'Pass either one id, or --address, or --all.'],
    ] as const)
      expect(await posthorn(['replay', ...args])).toMatchObject({ code: 1, err: `${message}\n` });
  });

  it('replays what failed at the others if one is paused before its batch starts, and says to repeat it', async () => {
    to.answerWith(deliveriesWith(500));
    const other = await on.subscribe(`${to.url}other`);
    // Batches begin with the newest address.
    const one = await on.subscribe(to.url, { environment: 'sandbox' });
    await on.publish(sampleEvent());
    await eventually('both to fail', async () => (await on.deliveries('status=failed')).length === 2);
    const pauseOne = () => on.operate('POST', `/v1/subscriptions/${one.id}/pause`);
    const consoleBehind = await ownReceiver(async ({ method, path, body }, response) => {
      if (path === '/v1/replays' && body.includes(one.id)) await pauseOne();
      const { status, body: answer } = await callApi(method, on.consoleUrl + path, {
        token: OPERATOR_TOKEN,
        ...(body !== '' && { body: JSON.parse(body) }),
      });
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
    const env = { POSTHORN_URL: new URL(consoleBehind.url).origin };
    const { code, out, err } = await posthorn(['replay', '--all', '--failed-from', '1h'], env);
    expect([code, out]).toEqual([1, expect.stringMatching(/^rpb_\S+ +1 +1$/m)]);
    expect(err).toMatch(
      /^1 of 2 batches was refused\. Repeat the command: .* The console said: .* subscription_ids\.0: /s,
    );
    const replayed = (await json('replays')).data;
    expect(replayed).toMatchObject([{ subscription_id: other.id }]);
  });

  it('exits with 1 if a bulk replay that it follows is cancelled', async () => {
    to.answerWith(deliveriesWith(500));
    const { id } = await on.subscribe(to.url);
    await on.publish(sampleEvent());
    await eventually('it to fail', async () => (await on.deliveries('status=failed')).length === 1);
    const respond = Promise.withResolvers<void>();
    to.answerWith((_, response) => void respond.promise.then(() => response.end()));
    const attempts = to.requests.length;
    const following = posthorn(['replay', id, '--follow']);
    await eventually('the attempt of the replay', () => to.requests.length > attempts);
    const [replay] = (await json('replays', '--subscription', id)).data;
    await json('cancel', replay.id);
    respond.resolve();
    expect(await following).toMatchObject({ code: 1, err: expect.stringContaining('The replay was cancelled') });
  });

  it('says why a signature is refused, with exit code 1, and reads the body from a file or its input', async () => {
    const { id } = await on.subscribe(to.url);
    await on.publish(sampleEvent());
    const { headers, body } = await eventually('a delivery', async () => to.requests.find(isDelivery));
    const check = (args: string[], input: string | Buffer) =>
      posthorn(['check-signature', id, '--header', String(headers['service-signature']), ...args], {}, input);
    expect(await check([], body)).toMatchObject({ code: 0, out: expect.stringMatching(/^correct +yes\n/) });
    const refused = await check([], `${body}\n`);
    expect(refused).toMatchObject({
      code: 1,
      err: '',
      out: expect.stringContaining('trailing newline  The body ends'),
    });
    const escaped = await check(['--json'], `${body.slice(0, -1)}\x1b[2J}`);
    expect(JSON.parse(escaped.out)).toMatchObject({ correct: false, findings: [{ kind: 'changed_body' }] });
    expect((await check([], `${body.slice(0, -1)}\x1b[2J}`)).out).not.toContain('\x1b');
    expect((await check(['--body', '/nowhere'], '')).err).toContain('Cannot read /nowhere: ENOENT');
    const replaced = { code: 1, err: expect.stringMatching(/^The standard input is not UTF-8\. Deliveries are: /) };
    expect(await check([], Buffer.from(`${body}ö`, 'latin1'))).toMatchObject(replaced);
  });

  it('finds addresses by words, and shows the customer of each', async () => {
    const one = await on.subscribe(to.url, { description: 'Åkerlund Bank\nsecond line' });
    await on.subscribe(to.url, { description: `${'x'.repeat(60)}\x1b[2J` });
    const table = (await posthorn(['list', 'åkerlund', 'bank'])).out;
    expect(table).toContain(one.id);
    expect(table).toContain('Åkerlund Bank');
    expect(table).not.toContain('second line');
    expect((await posthorn(['list'])).out).toContain(`${'x'.repeat(39)}…`);
    expect((await json('list', 'no-such-bank')).data).toEqual([]);
  });

  it('shows the request of a delivery, and a curl command that sends exactly it', async () => {
    // curl expands brackets and braces, unless it is told not to.
    await on.subscribe(`${to.url}?in[]=1&in=[1-3]&of={a,b}`);
    const reference = "it's \\ é\u0080\u0085a\u009b\u202ea\u2066";
    const harmful = /[\u007f-\u009f\u202e\u2066]/;
    await on.publish(sampleEvent({ data: { ...sampleEvent().data, reference } }));
    const first = await eventually('a delivery', async () => to.requests.find(isDelivery));
    const delivery = String(first.headers['service-delivery-id']);
    await eventually('its record', async () => (await on.delivery(delivery)).attempt_count === 1);
    const read = await posthorn(['request', delivery, '--attempt', '1']);
    expect(read).toMatchObject({ code: 0, err: '' });
    expect(read.out).toMatch(/^POST +http/);
    expect(read.out).not.toMatch(harmful);
    const { out } = await posthorn(['request', delivery, '--curl', '--attempt', '1']);
    expect(out).not.toMatch(harmful);
    for (const locale of ['C.UTF-8', 'C']) {
      const env = { PATH: process.env.PATH ?? '', LC_ALL: locale };
      await once(spawn('bash', ['-c', out], { env, stdio: 'ignore' }), 'close');
    }
    const [, ...again] = to.requests.filter(isDelivery);
    expect(again.map(({ body }) => body)).toEqual([first.body, first.body]);
    expect(again.map(({ path }) => path)).toEqual([first.path, first.path]);
    for (const { headers } of again) expect(headers['service-signature']).toBe(first.headers['service-signature']);
  });

  it('tries what waits for a retry now, one delivery or all that match', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '1h,2h' } });
    const { id } = await on.subscribe(to.url);
    to.answerWith((_request, response) => response.writeHead(500).end());
    for (let i = 0; i < 3; i++) await on.publish(sampleEvent());
    const waiting = await eventually('three to wait', async () => {
      const found = await on.deliveries('status=waiting_for_retry');
      return found.length === 3 && found;
    });
    to.answerWith(200);
    const run = (...args: string[]) => runPosthorn(on.consoleUrl, ['try-now', ...args]);
    expect(await run(waiting[0]!.id)).toMatchObject({ code: 0, err: '' });
    expect((await run('--all', '--event', waiting[1]!.event_id)).out).toBe('tried now  1\n');
    expect(await run('--all', '--subscription', id)).toEqual({ code: 0, out: 'tried now  1\n', err: '' });
    expect(await run('--all', '--json')).toMatchObject({ code: 0, out: expect.stringContaining('"tried_now": 0') });
    expect(await run()).toMatchObject({ code: 1, err: 'Name either a delivery, or --all.\n' });
    expect(await run(waiting[0]!.id, '--type', 'session.approved')).toMatchObject({
      code: 1,
      err: 'Filters need --all.\n',
    });
  });

  it('makes any call of the API', async () => {
    const { id } = await on.subscribe(to.url);
    const path = `/v1/subscriptions/${id}`;
    const patched = await posthorn(['api', 'PATCH', path, '--body', '{"description":"by hand"}']);
    expect(JSON.parse(patched.out)).toMatchObject({ id, description: 'by hand' });
    const piped = await posthorn(['api', 'PATCH', path, '--body', '-'], {}, '{"description":"piped"}');
    expect(JSON.parse(piped.out)).toMatchObject({ description: 'piped' });
    const marked = await posthorn(['api', 'PATCH', path, '--body', '-'], {}, '\ufeff{"description":"ö"}');
    expect(JSON.parse(marked.out)).toMatchObject({ description: 'ö' });
    const replaced = await posthorn(
      ['api', 'PATCH', path, '--body', '-'],
      {},
      Buffer.from('{"description":"ö"}', 'latin1'),
    );
    expect(replaced).toEqual({ code: 1, out: '', err: '--body: The standard input is not UTF-8.\n' });
    expect((await posthorn(['api', 'PATCH', path, '--body', '@/nowhere'])).err).toContain(
      'Cannot read /nowhere: ENOENT',
    );
    expect(await posthorn(['api', 'DELETE', path])).toEqual({ code: 0, out: '', err: '' });
    expect((await posthorn(['api', 'GET', path])).err).toContain(`(GET ${on.consoleUrl}${path})`);
    expect((await posthorn(['api', 'PATCH', path, '--body', '{'])).err).toContain('--body: ');
    expect((await posthorn(['api', 'GET', path, '--body', '{}'])).err).toContain('A GET has no body.');
    expect((await posthorn(['api', 'GET', 'http://x/v1/'])).err).toContain('does not begin with /v1/');
  });

  it('says what needs attention, and that a list may be longer than what it shows', async () => {
    const [one, other] = [await on.subscribe(to.url), await on.subscribe(`${to.url}other`)];
    const well = await posthorn(['overview']);
    expect(well).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/^all well +yes\nincidents +-\n/) });
    await on.operate('POST', `/v1/subscriptions/${one.id}/pause`);
    await on.publish(sampleEvent());
    const { out } = await eventually('the overview of now', async () => {
      const ran = await posthorn(['overview']);
      return ran.out.includes('held=1') && ran;
    });
    expect(out).toMatch(/^all well +no: 1 address fails or is paused$/m);
    expect(out).toMatch(/^need attention +1$/m);
    expect(out).toMatch(
      new RegExp(`^ {2}id=${one.id} status=paused failing since=- held=1 url=${to.url} verdict=`, 'm'),
    );
    expect(out).toMatch(/^workers:\n {2}process=\S+ in flight=\d+ of 100$/m);
    to.answerWith(() => undefined);
    expect((await posthorn(['resume', one.id])).out).toContain('active (resuming)');
    expect(out).toMatch(/^memory of Redis +\d+ of \d+ MiB, \d+ %$/m);
    const cut = await posthorn(['list', '--limit', '1']);
    expect(cut.out).toContain(other.id);
    expect(cut.err).toBe('There may be more than this one: see --limit.\n');
    expect((await posthorn(['list', '--limit', '1', '--json'])).err).toBe(cut.err);
    expect((await posthorn(['list', '--limit', '3'])).err).toBe('');
  });

  it('says how to follow a bulk replay that goes on when its console no longer answers', async () => {
    const { id } = await on.subscribe(to.url);
    const started = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
    to.answerWith(({ method }, response) => {
      if (method === 'POST') response.end(JSON.stringify({ ...started, status: 'running' }));
      else response.destroy();
    });
    const { code, err } = await posthorn(['replay', id], { POSTHORN_URL: to.url });
    expect(code).toBe(1);
    expect(err).toContain(`${started.id} goes on without this command: see "posthorn show ${started.id}".`);
  });

  it('follows a bulk replay to its end while its console does not answer for a time', async () => {
    const { id } = await on.subscribe(to.url);
    const started = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
    let looks = 0;
    to.answerWith(({ method }, response) => {
      if (method === 'POST') response.end(JSON.stringify({ ...started, status: 'running' }));
      else if (++looks < 3) response.destroy();
      else if (looks < 5) response.writeHead(503).end();
      else response.end(JSON.stringify({ ...started, status: 'done', finished_at: started.created_at }));
    });
    const { code, out, err } = await posthorn(['replay', id, '--follow', '--json'], { POSTHORN_URL: to.url });
    expect([code, JSON.parse(out).status]).toEqual([0, 'done']);
    expect(err.match(/Asking again until it answers/g)).toHaveLength(1);
    to.answerWith(({ method }, response) => {
      if (method === 'POST') response.end(JSON.stringify({ ...started, status: 'running' }));
      else response.writeHead(401).end();
    });
    const refused = await posthorn(['replay', id, '--follow'], { POSTHORN_URL: to.url });
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(`${started.id} goes on without this`)]);
  });

  it('says that an erasure which it waits for was cancelled, and what shows how far it came', async () => {
    const started = (await on.operate('POST', '/v1/erasures', { session_id: 'ses-cancelled' })).body;
    to.answerWith(({ method }, response) =>
      response.end(JSON.stringify({ ...started, status: method === 'POST' ? 'running' : 'cancelled' })),
    );
    const { code, err } = await posthorn(['erase', '--session', started.value, '--yes'], { POSTHORN_URL: to.url });
    expect([code, err]).toEqual([1, `The erasure was cancelled: see "posthorn show ${started.id}".\n`]);
  });

  it('says of a count what is left of the erasure, and how to cancel it, if it can not cancel it itself', async () => {
    const started = (await on.operate('POST', '/v1/erasures', { session_id: 'ses-left' })).body;
    const args = ['erase', '--session', started.value];
    const left = `Nothing was erased. ${started.id} is cancelled an hour after its count; at once by: posthorn api POST /v1/erasures/${started.id}/cancel\n`;
    const counted = { ...started, status: 'counted', found: { ...started.found, events: 7 } };
    to.answerWith(({ path, method }, response) => {
      if (path.endsWith('/cancel')) response.destroy();
      else response.end(JSON.stringify(method === 'POST' ? started : counted));
    });
    const unanswered = await posthorn(args, { POSTHORN_URL: to.url });
    expect(unanswered).toMatchObject({ code: 1, out: expect.stringMatching(/events +7\n/) });
    expect(unanswered.err).toMatch(/^The console has not answered: /);
    expect(unanswered.err.endsWith(left)).toBe(true);
    const run = ownPosthorn(to.url, args);
    to.answerWith(({ method }, response) => {
      if (method === 'POST') response.end(JSON.stringify(started));
      else run.child.kill('SIGINT');
    });
    expect(await run.ended).toEqual({ code: 1, out: '', err: left });
    // What it says works.
    expect(await json('api', 'POST', `/v1/erasures/${started.id}/cancel`)).toMatchObject({ status: 'cancelled' });
  });

  it('says which test delivery it has sent if it loses the console while it waits for the attempt', async () => {
    const { id } = await on.subscribe(to.url);
    const sent = (await on.operate('POST', `/v1/subscriptions/${id}/test`)).body;
    to.answerWith(({ method }, response) => {
      if (method === 'POST') response.end(JSON.stringify(sent));
      else response.destroy();
    });
    const { code, err } = await posthorn(['test', id], { POSTHORN_URL: to.url });
    expect([code, err]).toEqual([1, expect.stringContaining(`see "posthorn show ${sent.id}"`)]);
  });

  it('takes nothing for success that is not from a console, such as a page of a proxy', async () => {
    to.answerWith((_request, response) => response.end('<h1>Sign in</h1>'));
    for (const args of [['pause', 'sub_1'], ['tail'], ['listen', '--forward', '3000']]) {
      const { code, out, err } = await posthorn(args, { POSTHORN_URL: to.url });
      expect([args, code, out]).toEqual([args, 1, '']);
      expect(err).toContain('The response is not that of a console. Is POSTHORN_URL the address of a console?');
    }
  });

  it('gives up a console that accepts a call and does not respond', async () => {
    to.answerWith(() => undefined);
    // For the command line, 120 s are over at once.
    const hurry = 'const{setTimeout:s}=globalThis;globalThis.setTimeout=(f,ms)=>s(f,ms===120000?0:ms)';
    const env = { POSTHORN_URL: to.url, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hurry)}` };
    const [listed, paused] = [await posthorn(['list'], env), await posthorn(['pause', 'sub_1'], env)];
    expect([listed.code, listed.err]).toEqual([1, expect.stringMatching(/^Cannot reach .*: no response for 120 s\. /)]);
    expect(paused.err).toContain('not answered: no response for 120 s. The call may have been carried out');
  });

  it('says what a change in several calls has done before a call failed', async () => {
    const item = { subscription_id: 'sub_1', url: 'https://hooks.acme.example', result: 'resumed', detail: null };
    for (const [args, data, said] of [
      [['resume', '--reason', 'operator'], [item], /^sub_1 +resumed/m],
      [['try-now', '--all'], ['dlv_1', 'dlv_2'], /^tried now +2$/m],
    ] as const) {
      to.answerWith(({ body }, response) => {
        if (body.includes('"cursor":"more"')) response.writeHead(502).end();
        else response.end(JSON.stringify({ data, next_cursor: 'more' }));
      });
      const { code, out, err } = await posthorn([...args], { POSTHORN_URL: to.url });
      expect([code, out, err]).toEqual([1, expect.stringMatching(said), expect.stringContaining('status 502')]);
    }
  });

  it('colors no status if its output is not a terminal, unless FORCE_COLOR is set, and prints its version', async () => {
    await on.subscribe(to.url);
    expect((await posthorn(['list'])).out).not.toContain('\x1b');
    expect((await posthorn(['list'], { FORCE_COLOR: '1' })).out).toContain('\x1b[32mactive\x1b[39m');
    expect(await posthorn(['--version'])).toEqual({
      code: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+(-dev)?\n$/),
      err: '',
    });
  });

  it('completes commands, options and their values in bash, and prints scripts for zsh and fish', async () => {
    const script = (await posthorn(['completion', 'bash'])).out;
    const complete = (...words: string[]) => {
      const typed = words.map((word) => `'${word}'`).join(' ');
      const run = `${script}\nCOMP_WORDS=(posthorn ${typed}); COMP_CWORD=${words.length}; _posthorn; echo "\${COMPREPLY[*]}"`;
      const { stdout, stderr } = spawnSync('bash', ['-c', run], { encoding: 'utf8' });
      expect(stderr).toBe('');
      return stdout.trim();
    };
    expect(complete('deli')).toBe('deliveries');
    expect(complete('--json', 'list', '--st')).toBe('--status');
    expect(complete('list', '--status', 'p')).toBe('paused');
    expect(complete('subscriptions', '--health', 'f')).toBe('failing');
    expect(complete('list', '--limit', '')).toBe('');
    expect((await posthorn(['completion', 'zsh'])).out).toContain('compdef _posthorn posthorn');
    expect((await posthorn(['completion', 'fish'])).out).toContain('complete -c posthorn');
    expect((await posthorn(['completion', 'tcsh'])).err).toContain('Allowed choices are bash, zsh, fish');
  });

  it('is a command of the installed packages', () => {
    const command = join(import.meta.dirname, '../node_modules/.bin/posthorn');
    const { status, stdout } = spawnSync(command, ['--help'], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^Usage: posthorn /)]);
  });

  it('says once that it keeps searching, and how far back, if the newest do not match', async () => {
    let calls = 0;
    to.answerWith((_request, response) => {
      calls += 1;
      response.end(JSON.stringify({ data: [], next_cursor: calls % 3 === 0 ? null : 'further' }));
    });
    const listed = async (...args: string[]) => (await posthorn(args, { POSTHORN_URL: to.url })).err;
    expect(await listed('audit', '--operator', 'nobody')).toMatch(
      /^.* back to the oldest that is kept.*--from 1h.*\n$/,
    );
    const from = '2026-01-31T12:00:00Z';
    expect(await listed('deliveries', '--type', 'session.expired', '--from', from)).toMatch(
      /^.* back to 2026-01-31T.*\n$/,
    );
    expect(calls).toBe(6);
  });

  it('says in the list with which error an address fails', async () => {
    await on.subscribe(to.url);
    const { body } = await on.operate('GET', '/v1/subscriptions');
    const error = { label: 'dns ENOTFOUND', message: null, count: 12, since: '2026-01-31T12:00:00.000Z' };
    Object.assign(body.data[0].health, { state: 'failing', error });
    to.answerWith((_request, response) => response.end(JSON.stringify(body)));
    const { out, err } = await posthorn(['list'], { POSTHORN_URL: to.url });
    expect([out, err]).toEqual([expect.stringContaining(' failing (dns ENOTFOUND) '), '']);
  });

  it('prints an error of a line or two that names the console and the token that were used, and exits with 1', async () => {
    const refused = async (args: string[], env?: Record<string, string>) => {
      const { code, out, err } = await posthorn(args, env);
      expect([code, out]).toEqual([1, '']);
      expect(err).not.toContain('    at ');
      expect(err).not.toContain(OPERATOR_TOKEN);
      return err;
    };
    expect(await refused(['create', 'http://10.0.0.1'])).toMatch(/refused.*\n +url: /);
    expect(await refused(['show', 'sub_none'])).toContain('No resource has this id');
    expect(await refused(['list', '--limit', '0'])).toContain('whole number');
    expect(await refused(['list', '--status', 'gone'])).toContain('awaiting_validation');
    expect(await refused(['list', 'x'.repeat(201)])).toContain('q: Expected string to have <=200 characters');
    expect(await refused(['nonsense'])).toMatch(/unknown command.*\nTry posthorn --help\./);
    expect(await refused(['list', '--nonsense'])).toMatch(/unknown option.*\nTry posthorn list --help\./);
    expect(await refused(['list', '--limit', '1', '--sort', 'url'], { POSTHORN_TOKEN: 'wrong' })).toBe(
      `${on.consoleUrl} refused the operator token from POSTHORN_TOKEN. (GET ${on.consoleUrl}/v1/subscriptions)\n`,
    );
    expect(await refused(['deliveries', '--from', 'noon'])).toContain('a duration such as 30m');
    expect(await refused(['replay', 'dlv_1', '--from', '1h'])).toContain('A single delivery takes no filters, ');
  });
});
