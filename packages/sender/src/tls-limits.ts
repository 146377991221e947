/** The limits of TLS: what a receiver may make this process compute. */
import type { Socket } from 'node:net';
import { DEFAULT_CIPHERS } from 'node:tls';
import { ResponseError } from './result.ts';

/**
 * Excludes key exchange over finite fields, because the receiver chooses its modulus: one of 10,000 bits blocks the
 * event loop for a second of CPU.
 */
export const CIPHERS = `${DEFAULT_CIPHERS}:!DHE`;

/** Session tickets and new keys on one connection, those of the handshake included; usually there are about seven. */
const MAX_MESSAGES = 64;

/**
 * Destroys a connection on which the receiver sends session tickets, changes keys or renegotiates without end. These
 * messages carry no data, so no other limit sees them, and 2 connections full of them blocked the event loop for
 * seconds.
 */
export function limitTlsMessages(socket: Socket): void {
  let messages = 0;
  const count = () => {
    messages += 1;
    if (messages > MAX_MESSAGES) socket.destroy(new ResponseError('ERR_TLS_TOO_MANY_MESSAGES'));
  };
  socket.on('session', count);
  // There is a line for each key that either side begins to use.
  socket.on('keylog', count);
}
