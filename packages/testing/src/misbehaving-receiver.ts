/** A raw TCP server that misbehaves in one of many ways. */
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';

const OK = 'HTTP/1.1 200 OK\r\n';
const every = (socket: Socket, ms: number, text: string | Buffer) => {
  const timer = setInterval(() => socket.write(text), ms);
  socket.once('close', () => clearInterval(timer));
};
/** Writes `text` again and again, as fast as it is read. */
const flood = (socket: Socket, text: string) => {
  const chunk = Buffer.from(text.repeat(Math.ceil(0x10000 / text.length)));
  const pump = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', pump);
  pump();
};
/** Writes `text` byte by byte. */
const drip = (socket: Socket, text: string) => {
  let at = 0;
  const timer = setInterval(() => socket.write(text.charAt(at++ % text.length)), 20);
  socket.once('close', () => clearInterval(timer));
};

/** What the server does once a request has begun to arrive. */
const MISBEHAVIOURS = {
  'resets the connection': (socket: Socket) => socket.resetAndDestroy(),
  'closes without a response': (socket: Socket) => socket.end(),
  'closes after half a header': (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'),
  'never responds': () => undefined,
  'drips its headers': (socket: Socket) => {
    socket.write(OK);
    every(socket, 20, 'X-Drip: a\r\n');
  },
  'sends interim responses for ever': (socket: Socket) => every(socket, 10, 'HTTP/1.1 102 Processing\r\n\r\n'),
  'floods with 100': (socket: Socket) => flood(socket, 'HTTP/1.1 100 Continue\r\n\r\n'),
  'floods with 102': (socket: Socket) => flood(socket, 'HTTP/1.1 102 \r\n\r\n'),
  'floods with 103': (socket: Socket) => flood(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),
  'floods with the headers of an interim response': (socket: Socket) => {
    socket.write('HTTP/1.1 103 Early Hints\r\n');
    flood(socket, 'Link: </a>\r\n');
  },
  'sends as many interim responses as it may': (socket: Socket) => {
    socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(16));
    socket.write(`${OK}Content-Length: 0\r\n\r\n`);
  },
  'sends one interim response too many': (socket: Socket) => {
    socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(17));
    socket.write(`${OK}Content-Length: 0\r\n\r\n`);
  },
  'drips its status line': (socket: Socket) =>
    drip(socket, 'HTTP/1.1 200 So slow that nobody waits for its end\r\n\r\n'),
  'drips an interim response': (socket: Socket) => drip(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'),
  'never ends its status line': (socket: Socket) => {
    socket.write('HTTP/1.1 200 ');
    flood(socket, 'So good ');
  },
  'floods with empty lines': (socket: Socket) => flood(socket, '\r\n'),
  'responds twice': (socket: Socket) => {
    socket.write(`${OK}Content-Length: 0\r\n\r\n`.repeat(2));
  },
  'responds for ever': (socket: Socket) => flood(socket, `${OK}Content-Length: 0\r\n\r\n`),
  'sends interim responses first': (socket: Socket) => {
    socket.write(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
    );
    socket.write(`${OK}Content-Length: 0\r\n\r\n`);
  },
  'sends interim responses first, with lines that end with LF alone': (socket: Socket) => {
    socket.write(`HTTP/1.1 103 Early Hints\nLink: </a>\n\n${OK}Content-Length: 0\r\n\r\n`);
  },
  'responds with a status below 100': (socket: Socket) => socket.write('HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n'),
  'responds with a status of four digits': (socket: Socket) => socket.write('HTTP/1.1 1000 OK\r\n\r\n'),
  'sends an empty line before an interim response': (socket: Socket) => {
    socket.write(`\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 0\r\n\r\n`);
  },
  'switches protocols': (socket: Socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  'responds with garbage': (socket: Socket) => socket.write(`${'x'.repeat(199)}\r\n\r\n`),
  'sends too many headers': (socket: Socket) => {
    socket.write(OK);
    for (let i = 0; i < 2000; i++) socket.write(`X-${i}: ${'y'.repeat(50)}\r\n`);
  },
  'sends an endless body': (socket: Socket) => {
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n`);
    flood(socket, `4000\r\n${'a'.repeat(0x4000)}\r\n`);
  },
  'sends an endless chunk extension': (socket: Socket) => {
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n1;`);
    flood(socket, 'a=b;');
  },
  'sends endless trailers': (socket: Socket) => {
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n`);
    flood(socket, 'X-Trailer: a\r\n');
  },
  'announces a gigabyte': (socket: Socket) => {
    socket.write(`${OK}Content-Length: 1000000000\r\n\r\n`);
    flood(socket, 'a');
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
  /** Returns the bytes written so far. */
  bytesWritten(): number;
  /** Resolves once the peer has closed every connection. */
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
