/** Pipelined requests, and chunks that nobody reads, over real connections. */
import { connect } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { jsonBody } from './json-body.ts';
import { serve } from './test-service.ts';

describe('pipelined requests', () => {
  /** A service that sends no response before `open` is called. */
  async function serveLater() {
    const gate = Promise.withResolvers<void>();
    let taken = 0;
    const url = await serve((app) => {
      app.all('/later', jsonBody({ maxBytes: 100_000 }), async (request, response) => {
        taken += 1;
        await gate.promise;
        response.json(request.body ?? null);
      });
    });
    return { url, open: gate.resolve, taken: () => taken };
  }
  /** Sends all requests at once and collects the numbers of the responses: see `numbered`. */
  function send(url: string, requests: string[]) {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const answered: number[] = [];
    let [rest, closed] = ['', false];
    socket.on('data', (data) => {
      const responses = (rest + data.toString()).split('HTTP/1.1 200');
      rest = responses.pop()!;
      // The last response may be incomplete.
      const last = /"(\d+)\.x*"$/.exec(rest);
      if (last) {
        responses.push(rest);
        rest = '';
      }
      for (const response of responses) {
        const number = /"(\d+)\./.exec(response)?.[1];
        if (number !== undefined) answered.push(Number(number));
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed = true;
    });
    socket.write(requests.join(''));
    return { socket, answered, closed: () => closed };
  }
  const numbered = (i: number, length: number) => {
    const body = JSON.stringify(`${i}.`.padEnd(length, 'x'));
    return `POST /later HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };

  it('are handled in order, and only some kilobytes of them are read ahead', async () => {
    // Together more than the system's buffers hold.
    const all = Array.from({ length: 400 }, (_, i) => i);
    const { url, open, taken } = await serveLater();
    const { socket, answered } = send(
      url,
      all.map((i) => numbered(i, 50_000)),
    );
    await eventually('the first request to be handled', () => taken() === 1);
    for (let i = 0; i < 20; i++) expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
    expect(taken()).toBe(1);
    expect(socket.writableLength).toBeGreaterThan(0);
    open();
    await eventually('all responses', () => answered.length === all.length);
    expect(answered).toEqual(all);
    socket.destroy();
  });

  it('beyond the total limit close their connection; other connections and clients get responses', async () => {
    const { url, open } = await serveLater();
    // As many as are read from a connection at once; together more than may wait.
    const each = 500;
    const requests = Array.from({ length: each }, (_, i) => numbered(i, 4));
    const clients = Array.from({ length: 60 }, () => send(url, requests));
    await eventually('a connection to be closed', () => clients.some(({ closed }) => closed()));
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
    const others = clients.filter(({ closed }) => !closed());
    expect(others.length).toBeGreaterThan(5);
    // A few of them prove as much as all.
    for (const { socket } of others.splice(5)) socket.destroy();
    open();
    await eventually('the other responses', () => others.every(({ answered }) => answered.length === each));
    for (const { socket } of clients) socket.destroy();
  });
});

describe('chunks that nobody reads', () => {
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunks = (count: number) => `${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`;
  /** A service that responds before it has the body, once `open` is called, and a connection to it. */
  async function start() {
    const gate = Promise.withResolvers<void>();
    const url = await serve((app) => {
      app.post('/', async (_request, response) => {
        await gate.promise;
        response.end('done');
      });
    });
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    let [received, closed] = ['', false];
    socket.on('data', (data) => {
      received += data.toString();
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      closed = true;
    });
    const responses = () => received.split('HTTP/1.1 ').length - 1;
    return { socket, open: gate.resolve, responses, received: () => received, closed: () => closed };
  }

  it('are discarded after the response; very many of them close the connection', async () => {
    const { socket, open, responses, closed } = await start();
    open();
    for (const count of [1, 2]) {
      socket.write(head);
      await eventually('a response before the body', () => responses() === count);
      if (count === 1) socket.write(chunks(500));
    }
    socket.write(chunks(5_000) + head);
    await eventually('the connection to be closed, or a response', () => closed() || responses() === 3);
    expect(responses()).toBe(2);
  });

  it.each([
    ['of the request in progress', chunks(500), 1],
    ['of one that waits', chunks(1) + head + chunks(500), 2],
    ['of several that wait', chunks(1) + (head + chunks(300)).repeat(3), 4],
  ])('may be some hundreds before the response: %s', async (_what, rest, count) => {
    const { socket, open, responses } = await start();
    socket.write(head + rest, () => open());
    await eventually('all responses', () => responses() === count);
    socket.destroy();
  });

  it.each([
    ['of the request in progress', chunks(2_000)],
    ['of one that waits', chunks(1) + head + chunks(2_000)],
  ])('close the connection before the response if they are very many: %s', async (_what, rest) => {
    const { socket, open, responses, closed } = await start();
    socket.write(head + rest);
    // A connection without traffic would be closed too, after two minutes.
    await eventually('the connection to be closed', closed, 60_000).finally(open);
    expect(responses()).toBe(0);
  });

  it('close the connection after an expectation that nobody has', async () => {
    const { socket, responses, received, closed } = await start();
    socket.write(head.replace('Host', 'Expect: more\r\nHost'));
    await eventually('the connection to be closed', closed);
    expect(received()).toMatch(/^HTTP\/1\.1 417 /);
    expect(responses()).toBe(1);
  });
});
