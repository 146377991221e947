/**
 * Receivers of all kinds on one server, each at its own path, that remember every delivery and their response to it.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from './random.ts';

type Kind = 'good' | 'slow' | 'flapping' | 'failing' | 'hanging' | 'resetting';

interface Arrival {
  path: string;
  deliveryId: string;
  eventId: string;
  signature: string;
  body: string;
  atMs: number;
  /** Whether the response was a 2xx. */
  taken: boolean;
}

export interface Receivers {
  url: string;
  paths: { path: string; kind: Kind }[];
  arrivals: Arrival[];
  /** From now on, all respond well: a resume sends one delivery at a time to a receiver that fails. */
  calm(): void;
  close(): Promise<void>;
}

/** The number of receivers of each kind. */
const KINDS: Record<Kind, number> = { good: 8, slow: 2, flapping: 4, failing: 2, hanging: 2, resetting: 2 };
/** A flapping receiver changes its behavior after this time. */
const FLAP_MS = 3_000;

export async function startReceivers(random: Random): Promise<Receivers> {
  const paths = Object.entries(KINDS).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, i) => ({ path: `/${kind}-${i}`, kind: kind as Kind })),
  );
  const kinds = new Map(paths.map(({ path, kind }) => [path, kind]));
  const phases = new Map(paths.map(({ path }) => [path, random.between(0, FLAP_MS)]));
  const arrivals: Arrival[] = [];
  let isCalm = false;

  const answer = (path: string, body: string, response: ServerResponse): boolean => {
    const kind = kinds.get(path) ?? 'good';
    const calmed = isCalm && kind !== 'slow' ? 'good' : kind;
    switch (calmed) {
      case 'good':
        response.end();
        return true;
      case 'slow':
        setTimeout(() => response.end(), 300);
        return true;
      case 'flapping': {
        const up = Math.floor((Date.now() + phases.get(path)!) / FLAP_MS) % 2 === 0;
        response.writeHead(up ? 200 : 503).end();
        return up;
      }
      case 'failing':
        // Receivers quote what they got.
        response.writeHead(500).end(body);
        return false;
      case 'hanging':
        return false;
      case 'resetting':
        response.socket?.resetAndDestroy();
        return false;
    }
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => response.destroy());
    request.on('end', () => {
      const path = request.url ?? '';
      const deliveryId = request.headers['service-delivery-id'];
      // The probe of a validation: every address is acceptable.
      if (deliveryId === undefined) {
        response.end();
        return;
      }
      const body = Buffer.concat(chunks).toString();
      arrivals.push({
        path,
        deliveryId: String(deliveryId),
        eventId: String(request.headers['service-event-id']),
        signature: String(request.headers['service-signature']),
        body,
        atMs: Date.now(),
        taken: answer(path, body, response),
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    arrivals,
    calm() {
      isCalm = true;
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
