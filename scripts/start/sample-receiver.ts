/**
 * A receiver like a subscriber's, made with packages/receiver: verifies signatures, responds, and reports the delivery.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createReceiver } from '@posthorn/receiver';
import { nodeHandler } from '@posthorn/receiver/node';

export interface Received {
  headers: Record<string, string>;
  body: string;
}

export interface SampleReceiver {
  url: string;
  port: number;
  /** The secret of its subscription; until it is known, only the probe of a validation is accepted. */
  setSecret(secret: string): void;
  close(): void;
}

/**
 * Listens on `port`, or on a free one if that is in use. Calls `onDelivery` for each event whose signature is valid.
 */
export async function startSampleReceiver(
  port: number,
  shownHeaders: readonly string[],
  onDelivery: (received: Received) => void,
): Promise<SampleReceiver> {
  let secret: string | undefined;
  const receiver = createReceiver({
    secrets: () => (secret === undefined ? [] : [secret]),
    outdated: 'process',
    onEvent(_event, { header, body }) {
      const headers = Object.fromEntries(shownHeaders.map((name) => [name, header(name) ?? '']));
      onDelivery({ headers, body: new TextDecoder().decode(body) });
    },
  });
  const server = createServer(nodeHandler(receiver));
  const listen = (wanted: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(wanted, '127.0.0.1', () => {
        server.off('error', reject);
        resolve();
      });
    });
  await listen(port).catch(() => listen(0));
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${bound}/webhooks`,
    port: bound,
    setSecret(value) {
      secret = value;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
