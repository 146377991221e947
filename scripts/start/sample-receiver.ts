/** A receiver like a subscriber's: reads the raw body, verifies the signature, responds, and reports the delivery. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifySignature } from '@posthorn/signing';

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

export interface SampleReceiver {
  url: string;
  port: number;
  /** The secret of its subscription; until it is known, only the probe of a validation gets a response. */
  setSecret(secret: string): void;
  close(): void;
}

const MOST_BYTES = 1024 * 1024;

/** Listens on `port`, or on a free one if that is in use. Calls `onDelivery` for each delivery whose signature is valid. */
export async function startSampleReceiver(
  port: number,
  onDelivery: (received: Received) => void,
): Promise<SampleReceiver> {
  let secret: string | undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MOST_BYTES) request.destroy();
      else chunks.push(chunk);
    });
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const header = request.headers['service-signature'];
      if (header === undefined) {
        // The probe of a validation has no signature.
        response.writeHead(200).end();
        return;
      }
      const nowS = Math.floor(Date.now() / 1000);
      const genuine = secret !== undefined && verifySignature({ header: String(header), secret, body, nowS });
      response.writeHead(genuine ? 200 : 400).end();
      if (genuine) onDelivery({ headers: request.headers, body: body.toString() });
    });
  });
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
