/** Raw connections of an attacker, from a separate loopback IP. */
import { connect, type Socket } from 'node:net';
import { atEnd } from '../own.ts';

export interface RawConnection {
  socket: Socket;
  /** Everything received so far. */
  text(): string;
  /** Resolves when either side has closed the connection. */
  closed: Promise<void>;
}

/**
 * Connects from `localAddress` and sends `bytes`; resolves when the system has taken them, or the connection was
 * refused.
 */
export async function openRaw(url: string, bytes: string, localAddress = '127.0.0.2'): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  let text = '';
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  atEnd(() => socket.destroy());
  socket.on('data', (data) => {
    text += data;
  });
  // Some of these tests expect a reset; `closed` reports it.
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const sent = new Promise<void>((resolve) => socket.once('connect', () => socket.write(bytes, () => resolve())));
  await Promise.race([sent, closed]);
  return { socket, text: () => text, closed };
}

export async function openMany(count: number, ...args: Parameters<typeof openRaw>): Promise<RawConnection[]> {
  return await Promise.all(Array.from({ length: count }, () => openRaw(...args)));
}

/** A request line and headers, without a body. */
export function head(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ Host: 'attacked', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Some text as one chunk of an unfinished body. */
export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
