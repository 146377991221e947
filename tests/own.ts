/** What a test starts for itself: ended when the test is over, the last first. */
import { afterEach } from '@jest/globals';
import { type Receiver, startReceiver } from '@posthorn/testing';
import { type Process, startProcess } from './processes.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Has something done when the test is over. */
export function atEnd(end: () => unknown): void {
  ends.push(end);
}

export async function ownWorld(options?: WorldOptions): Promise<World> {
  const world = await startWorld(options);
  atEnd(() => world.stop());
  return world;
}

export async function ownReceiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const receiver = await startReceiver(...args);
  atEnd(() => receiver.close());
  return receiver;
}

export function ownProcess(...args: Parameters<typeof startProcess>): Process {
  const started = startProcess(...args);
  atEnd(async () => {
    started.child.kill('SIGKILL');
    await started.ended;
  });
  return started;
}
