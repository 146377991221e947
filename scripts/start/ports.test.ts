/** The ports that `npm start` chooses. */
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { freePort, isPortFree } from '../free-port.ts';
import { choosePorts } from './ports.ts';

const taken: Server[] = [];
afterEach(() => {
  for (const server of taken.splice(0)) server.close();
});
async function take(port: number): Promise<void> {
  const server = createServer();
  // If another program already uses the port, that serves the test as well.
  await new Promise<void>((resolve) => server.once('error', () => resolve()).listen(port, '127.0.0.1', resolve));
  taken.push(server);
}

describe('ports', () => {
  it('are those that the settings name', async () => {
    const [a, b, c] = [await freePort(), await freePort(), await freePort()];
    const said: string[] = [];
    const env = { INGEST_PORT: String(a), CONSOLE_PORT: ` ${b} `, WORKER_PORT: String(c) };
    expect(await choosePorts(env, (line) => said.push(line))).toEqual({ ingest: a, console: b, worker: c });
    expect(said).toEqual([]);
  });
  it('are free ones if the default ports are taken', async () => {
    await take(3000);
    await take(3002);
    const said: string[] = [];
    const ports = await choosePorts({ CONSOLE_PORT: '' }, (line) => said.push(line));
    expect(ports.ingest).not.toBe(3000);
    expect(ports.worker).not.toBe(3002);
    expect(new Set(Object.values(ports)).size).toBe(3);
    expect(said).toContain(`Port 3000 is in use; ingest uses ${ports.ingest}.`);
    expect(said).toContain(`Port 3002 is in use; worker uses ${ports.worker}.`);
  });
  it('are free ones if another app is to have the default port', async () => {
    // If another program already uses the port, that serves the test as well.
    const env = (await isPortFree(3001)) ? { INGEST_PORT: '3001' } : {};
    expect((await choosePorts(env, () => undefined)).console).not.toBe(3001);
  });
  it.each(['0', '65536', '-1', '3000.5', 'http', '1e3'])('are refused if a setting is %s', async (bad) => {
    const work = choosePorts({ WORKER_PORT: bad }, () => undefined);
    await expect(work).rejects.toThrow(`WORKER_PORT: must be a port from 1 to 65535, but is "${bad}".`);
  });
  it('are all named in one message if they are taken or named twice', async () => {
    const [free, busy] = [await freePort(), await freePort()];
    await take(busy);
    const env = { INGEST_PORT: String(free), CONSOLE_PORT: String(free), WORKER_PORT: String(busy) };
    const error = await choosePorts(env, () => undefined).then(String, String);
    expect(error).toContain(`CONSOLE_PORT: port ${free} is set twice.`);
    expect(error).toContain(`WORKER_PORT: port ${busy} is in use`);
  });
});
