/** Connects a receiver to servers that use the Fetch API: Next.js, Hono, Cloudflare Workers, Deno, Bun. */
import { collectBody } from '../collect-body.ts';
import type { Receiver } from '../receiver.ts';

/** What a runtime offers for work after the response: Cloudflare's and Vercel's context, Hono's `c.executionCtx`. */
interface Context {
  waitUntil?: (work: Promise<unknown>) => void;
}

/**
 * Returns a handler of requests. Where the runtime ends a process after the response, pass its context, so that it
 * waits for the processing. What Deno and Bun pass in its place has no `waitUntil`.
 */
export function fetchHandler(receiver: Receiver) {
  return async (request: Request, runtime?: Context | object): Promise<Response> => {
    const context: Context | undefined = runtime;
    const body = await readBody(request, receiver.maxBodyBytes).catch(() => 'aborted' as const);
    // The sender has gone: nobody gets this response.
    if (body === 'aborted') return new Response(null, { status: 400 });
    const header = (name: string) => request.headers.get(name);
    const answer =
      body === 'parsed'
        ? receiver.bodyLost()
        : body === 'too_large'
          ? receiver.tooLarge()
          : await receiver.receive({ method: request.method, header, body });
    // In the next turn of the event loop, so that the response is not kept waiting.
    const processed = new Promise<void>((resolve) => setTimeout(() => resolve(answer.process()), 0));
    context?.waitUntil?.(processed);
    // A response of the Fetch API may not have headers of the connection.
    const { connection: _, ...headers } = answer.headers;
    return new Response(answer.body, { status: answer.status, headers });
  };
}

async function readBody(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | 'parsed' | 'too_large'> {
  if (request.bodyUsed || request.body?.locked) return 'parsed';
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return 'too_large';
  const body = collectBody(maxBytes);
  const reader = request.body?.getReader();
  for (;;) {
    const part = await reader?.read();
    if (!part || part.done) return body.whole();
    if (body.add(part.value)) continue;
    await reader?.cancel();
    return 'too_large';
  }
}
