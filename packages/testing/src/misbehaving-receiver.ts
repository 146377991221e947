/** A raw TCP server that answers in one of the ways in which receivers go wrong. */

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';

const OK = 'HTTP/1.1 200 OK\r\n';
const every = (socket: Socket, ms: number, text: string | Buffer) => {
  const timer = setInterval(() => socket.write(text), ms);
  socket.once('close', () => clearInterval(timer));
};

/** What each does once a request has begun to arrive. */
const MISBEHAVIOURS = {
  'resets the connection': (socket: Socket) => socket.resetAndDestroy(),
  'closes without an answer': (socket: Socket) => socket.end(),
  'closes after half a header': (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'),
  'never answers': () => undefined,
  'drips its headers': (socket: Socket) => {
    socket.write(OK);
    every(socket, 20, 'X-Drip: a\r\n');
  },
  'sends interim answers for ever': (socket: Socket) => every(socket, 10, 'HTTP/1.1 102 Processing\r\n\r\n'),
  'sends interim answers first': (socket: Socket) => {
    socket.write(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
    );
    socket.write(`${OK}Content-Length: 0\r\n\r\n`);
  },
  'switches protocols': (socket: Socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  'answers garbage': (socket: Socket) => socket.write(`${'x'.repeat(199)}\r\n\r\n`),
  'sends too many headers': (socket: Socket) => {
    socket.write(OK);
    for (let i = 0; i < 2000; i++) socket.write(`X-${i}: ${'y'.repeat(50)}\r\n`);
  },
  'sends an endless body': (socket: Socket) => {
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.concat([Buffer.from('4000\r\n'), Buffer.alloc(0x4000, 97), Buffer.from('\r\n')]);
    const pump = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', pump);
    pump();
  },
  'announces a gigabyte': (socket: Socket) => {
    socket.write(`${OK}Content-Length: 1000000000\r\n\r\n`);
    const pump = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(0x10000, 97)));
    };
    socket.on('drain', pump);
    pump();
  },
  'drips its body': (socket: Socket) => {
    socket.write(`${OK}Content-Length: 100000\r\n\r\n`);
    every(socket, 20, 'a');
  },
} as const;

export type Misbehaviour = keyof typeof MISBEHAVIOURS;
export const misbehaviours = Object.keys(MISBEHAVIOURS) as Misbehaviour[];

export interface MisbehavingReceiver {
  url: string;
  /** Bytes written so far, and whether the peer has closed every connection. */
  bytesWritten(): number;
  allClosed(): Promise<void>;
  close(): Promise<void>;
}

export async function startMisbehavingReceiver(kind: Misbehaviour): Promise<MisbehavingReceiver> {
  const sockets = new Set<Socket>();
  let written = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      written += socket.bytesWritten;
      sockets.delete(socket);
    });
    socket.once('data', () => MISBEHAVIOURS[kind](socket));
    socket.on('data', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    bytesWritten: () => written + [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0),
    async allClosed() {
      await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
