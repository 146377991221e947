/** Connects a receiver to node:http, express, connect, and others that use Node's requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { collectBody } from '../collect-body.ts';
import type { Receiver, Reply } from '../receiver.ts';

/**
 * Returns a request listener, which is an express handler too: `app.post('/webhooks', nodeHandler(receiver))`. Nothing
 * before it may parse the body; `express.raw` may read it.
 */
export function nodeHandler(receiver: Receiver) {
  return async (request: IncomingMessage & { body?: unknown }, response: ServerResponse): Promise<void> => {
    const body = await readBody(receiver, request);
    if (body === 'aborted') return;
    const answer = async (): Promise<Reply> => {
      if (body === 'too_large') return receiver.tooLarge();
      if (body === 'parsed') return receiver.bodyLost();
      const header = (name: string) => request.headers[name]?.toString();
      return await receiver.receive({ method: request.method ?? '', header, body });
    };
    const { status, headers, body: text, process } = await answer();
    // If something else has responded, or the sender has gone, the event is processed all the same: it is claimed.
    try {
      if (!response.headersSent && !response.destroyed) {
        response.writeHead(status, headers);
        await new Promise<void>((resolve) => {
          response.once('close', resolve);
          response.end(text, resolve);
        });
      }
    } catch (error) {
      // A middleware that wraps the response failed.
      void process();
      throw error;
    }
    if (body === 'too_large') request.destroy();
    await process();
  };
}

async function readBody(
  { maxBodyBytes }: Receiver,
  request: IncomingMessage & { body?: unknown },
): Promise<Uint8Array<ArrayBuffer> | 'too_large' | 'parsed' | 'aborted'> {
  if (request.body instanceof Uint8Array) return Uint8Array.from(request.body);
  // A parser that another type of content is for sets `body` too (express 4), and leaves the bytes unread.
  if (request.readableEnded || (request.body !== undefined && request.readableDidRead !== false)) return 'parsed';
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return 'too_large';
  return await new Promise((resolve) => {
    const body = collectBody(maxBodyBytes);
    request.on('data', (chunk: Uint8Array) => {
      if (body.add(chunk)) return;
      request.pause();
      resolve('too_large');
    });
    request.once('end', () => resolve(body.whole()));
    request.once('close', () => resolve('aborted'));
    request.once('error', () => resolve('aborted'));
  });
}
