/** The kept connections of deliveries: how long they are used, and when one is given up. */
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { atEnd } from '@posthorn/testing/at-end';
import { createConnections } from './connections.ts';
import { followOpening } from './opening-steps.ts';
import { listening, post, resolvingTo, responded, testReceiver, testSender } from './test-sender.ts';

describe('connections of deliveries', () => {
  it('are kept: sequential requests use the same one', async () => {
    const receiver = await testReceiver();
    const from = testSender();
    for (let i = 0; i < 5; i++) expect(await from.send(post(receiver.url))).toEqual(responded());
    expect(receiver.connections()).toBe(1);
  });
  it('are not kept for single requests', async () => {
    const receiver = await testReceiver();
    const from = testSender({}, 'single requests');
    for (let i = 0; i < 2; i++) expect(await from.send(post(receiver.url))).toEqual(responded());
    expect(receiver.connections()).toBe(2);
  });
  it('are used for a minute at most, however busy they are', async () => {
    const receiver = await testReceiver();
    let nowMs = 0;
    const from = testSender({ now: () => nowMs });
    const connectionsAt = async (ms: number) => {
      nowMs = ms;
      await from.send(post(receiver.url));
      return receiver.connections();
    };
    expect([await connectionsAt(0), await connectionsAt(30_000), await connectionsAt(59_999)]).toEqual([1, 1, 1]);
    expect([await connectionsAt(60_000), await connectionsAt(119_999), await connectionsAt(120_000)]).toEqual([
      2, 2, 3,
    ]);
  });
  it('follow a name that moves after a minute, and are blocked if it moves to a private address', async () => {
    const heard: string[] = [];
    const answering = (ip: string) =>
      createServer((_request, response) => {
        heard.push(ip);
        response.writeHead(200).end();
      });
    const port = await listening(answering('127.0.0.1'), '127.0.0.1');
    await listening(answering('127.0.0.2'), '127.0.0.2', port);
    let [address, nowMs] = ['127.0.0.1', 0];
    const from = testSender({ resolve: async () => [{ address, family: 4 }], now: () => nowMs });
    const send = () => from.send(post(`http://receiver.test:${port}/`));
    await send();
    address = '127.0.0.2';
    await send();
    nowMs = 60_000;
    expect(await send()).toMatchObject({ kind: 'responded', ip: '127.0.0.2' });
    expect(heard).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.2']);
    address = '10.0.0.7';
    nowMs = 120_000;
    expect(await send()).toMatchObject({ kind: 'address_blocked', ip: '10.0.0.7' });
    expect(heard).toHaveLength(3);
  });
  it('cost no attempt if the receiver has closed them: the request is repeated over a new one', async () => {
    const receiver = await testReceiver();
    const from = testSender();
    await from.send(post(receiver.url));
    receiver.answerWith((_request, response) => {
      if (receiver.requests.length === 2) response.socket?.resetAndDestroy();
      else response.writeHead(200).end();
    });
    expect(await from.send(post(receiver.url))).toEqual(responded());
    expect(receiver.connections()).toBe(2);
  });
  it('cost an attempt if the receiver closes them after it had time to work on the request', async () => {
    const receiver = await testReceiver();
    let nowMs = 0;
    const from = testSender({ now: () => nowMs });
    await from.send(post(receiver.url));
    receiver.answerWith((_request, response) => {
      nowMs += 2_000;
      response.socket?.resetAndDestroy();
    });
    expect(await from.send(post(receiver.url))).toMatchObject({ kind: 'connection_failed' });
    expect([receiver.requests.length, receiver.connections()]).toEqual([2, 1]);
  });
  it('are not kept if the receiver has responded without reading the request', async () => {
    const sockets: Socket[] = [];
    const server = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.pause();
        socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    // More than the system buffers.
    const large = {
      ...post(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
      body: 'a'.repeat(16_000_000),
    };
    const from = testSender({ timeoutMs: 2_000 });
    for (let i = 0; i < 2; i++) expect(await from.send(large)).toEqual(responded(413));
    expect(sockets).toHaveLength(2);
  });
  it('carry a request twice at most to a receiver that resets every one', async () => {
    const receiver = await testReceiver();
    const from = testSender();
    await Promise.all(Array.from({ length: 5 }, () => from.send(post(receiver.url))));
    receiver.answerWith((_request, response) => void response.socket?.resetAndDestroy());
    const before = receiver.requests.length;
    expect(await from.send(post(receiver.url))).toMatchObject({ kind: 'connection_failed', error: 'connection' });
    expect(receiver.requests.length - before).toBe(2);
  });
  it('are limited to 1,024 idle ones over all hosts', async () => {
    const server = createServer((_request, response) => response.writeHead(200).end());
    const port = await listening(server, '127.0.0.1');
    const from = testSender({ resolve: resolvingTo('127.0.0.1') });
    let connections = 0;
    server.on('connection', () => {
      connections += 1;
    });
    const sendTo = async (first: number, count: number) => {
      const urls = Array.from({ length: count }, (_, i) => `http://host-${first + i}.test:${port}/`);
      for (const result of await Promise.all(urls.map((url) => from.send(post(url)))))
        expect(result).toEqual(responded());
    };
    for (let first = 0; first < 1_100; first += 100) await sendTo(first, 100);
    expect(connections).toBe(1_100);
    // 1,024 are kept: those that have been idle longest were closed.
    await sendTo(0, 50);
    expect(connections).toBe(1_150);
  });
});

describe('connections that become idle in one turn of the event loop', () => {
  it('are limited to 1,024 as well: those that have been idle longest are closed', async () => {
    const connections = createConnections(() => 0);
    const sockets = Array.from({ length: 1_100 }, () => new Socket());
    const all = sockets.map((socket, i) =>
      connections.add(`http://host-${i}.test`, { socket, steps: followOpening(socket) }, null),
    );
    for (const connection of all) connections.release(connection);
    // They are kept in a microtask each.
    await new Promise(setImmediate);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual(sockets.map((_, i) => i < 1_100 - 1_024));
    connections.close();
  });
});

describe('unsolicited bytes of a receiver', () => {
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  const ERROR = 'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n';

  /** Answers the first request with what a test says, all others with 500. */
  async function startServer(first: string) {
    const sockets: Socket[] = [];
    let requests = 0;
    const server = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write(requests++ === 0 ? first : ERROR));
    });
    atEnd(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const closed = (index: number) => new Promise((resolve) => sockets[index]!.once('close', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sockets, closed };
  }

  it('close the connection if they come with a response; the next request gets its own response', async () => {
    const server = await startServer(OK + OK);
    const from = testSender();
    expect(await from.send(post(server.url))).toEqual(responded(200));
    expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(2);
  });
  it.each([OK, 'HTTP/1.1 100 Continue\r\n\r\n', '\r\n', 'x'])('close an idle connection: %j', async (bytes) => {
    const server = await startServer(OK);
    const from = testSender();
    expect(await from.send(post(server.url))).toEqual(responded(200));
    const closed = server.closed(0);
    server.sockets[0]!.write(bytes);
    await closed;
    expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(2);
  });
  it('are not taken for the response to the next request', async () => {
    const server = await startServer(OK);
    const from = testSender();
    expect(await from.send(post(server.url))).toEqual(responded(200));
    server.sockets[0]!.write(OK);
    expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(2);
  });
  it('end keep-alive for that receiver', async () => {
    const server = await startServer(OK);
    const from = testSender();
    await from.send(post(server.url));
    const closed = server.closed(0);
    server.sockets[0]!.write(OK);
    await closed;
    for (let i = 0; i < 3; i++) expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(4);
  });
  it('cost no attempt if they are no response: the request is repeated over a new connection, and none is kept', async () => {
    const server = await startServer(OK);
    const from = testSender();
    await from.send(post(server.url));
    server.sockets[0]!.removeAllListeners('data').once('data', () => server.sockets[0]!.write('the rest of a body'));
    for (let i = 0; i < 2; i++) expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(3);
  });
  it('do not include a 408 on a kept connection: the request is repeated over a new one', async () => {
    let requests = 0;
    const receiver = await testReceiver((_request, response) => {
      requests += 1;
      response.writeHead(requests === 2 ? 408 : 200).end();
    });
    const from = testSender();
    expect(await from.send(post(receiver.url))).toEqual(responded(200));
    expect(await from.send(post(receiver.url))).toEqual(responded(200));
    expect([requests, receiver.connections()]).toEqual([3, 2]);
  });
  it('do not include a 408 that comes later on a kept connection: it is the response', async () => {
    let [requests, nowMs] = [0, 0];
    const receiver = await testReceiver((_request, response) => {
      requests += 1;
      if (requests === 2) nowMs += 2_000;
      response.writeHead(requests === 2 ? 408 : 200).end();
    });
    const from = testSender({ now: () => nowMs });
    await from.send(post(receiver.url));
    expect(await from.send(post(receiver.url))).toEqual(responded(408));
    expect([requests, receiver.connections()]).toEqual([2, 1]);
  });
  it('do not include a 408 on a new connection: it is the response', async () => {
    const receiver = await testReceiver(408);
    expect(await testSender().send(post(receiver.url))).toEqual(responded(408));
    expect(receiver.requests).toHaveLength(1);
  });
});
