/** Connects a receiver to fastify. */
import type { Receiver } from '../receiver.ts';
import { nodeHandler } from './node.ts';

type NodeHandler = ReturnType<typeof nodeHandler>;

/** The part of a fastify instance that the plugin uses. */
interface Fastify {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  post(
    path: string,
    handler: (
      request: { raw: Parameters<NodeHandler>[0] },
      reply: { raw: Parameters<NodeHandler>[1]; hijack(): void },
    ) => Promise<void>,
  ): unknown;
}

/**
 * Returns a plugin with one route: `app.register(fastifyReceiver(receiver, '/webhooks'))`. Other routes keep their body
 * parsers.
 */
export function fastifyReceiver(receiver: Receiver, path: string) {
  const handle = nodeHandler(receiver);
  return async (app: Fastify): Promise<void> => {
    // In this plugin only: the body is left unread for the receiver.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.post(path, async (request, reply) => {
      reply.hijack();
      await handle(request.raw, reply.raw);
    });
  };
}
