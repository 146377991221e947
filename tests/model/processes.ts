/**
 * Processes that can stop or die between any two steps: before every command to Redis, and before every job added to
 * the queue.
 */
import type { Store } from '@posthorn/store';

export interface Task {
  /** The delivery whose job it has taken; undefined for other work. */
  deliveryId: string | undefined;
  /** Whether its process was stopped meanwhile: what it has read may be outdated. */
  stoodStill: boolean;
}

export interface Process {
  tasks: Set<Task>;
  /** Steps that it may still take before it stops. */
  stepsLeft: number;
  dead: boolean;
  /** Waits while the process is stopped; for ever if it is dead. */
  pass(): Promise<void>;
  goOn(): void;
  run(deliveryId: string | undefined, work: (task: Task) => Promise<void>): void;
}

/**
 * To detect when all processes are idle: `steps` is incremented by each step of any, `underWay` counts what takes
 * several commands.
 */
export const activity = { steps: 0, underWay: 0, failure: undefined as unknown };

/** Which script is sent again, because its reply was lost: the one after so many others; undefined for none. */
export const resend = { after: undefined as number | undefined };
/** These take jobs, and what the first try has taken nobody knows: that is tested in packages/queue. */
const TAKE_JOBS = new Set(['script_takeJobs', 'script_recordSuccesses', 'script_finishJob', 'script_parkJobs']);

function isResent(command: string): boolean {
  if (resend.after === undefined || !command.startsWith('script_') || TAKE_JOBS.has(command)) return false;
  if (resend.after-- > 0) return false;
  resend.after = undefined;
  return true;
}

/** A step of a process that takes several commands. */
export async function inOneStep<T>(pass: () => Promise<void>, step: () => Promise<T>): Promise<T> {
  await pass();
  activity.underWay += 1;
  try {
    return await step();
  } finally {
    activity.underWay -= 1;
    activity.steps += 1;
  }
}

export function createProcess(): Process {
  const waiting: (() => void)[] = [];
  const process: Process = {
    tasks: new Set(),
    stepsLeft: Number.POSITIVE_INFINITY,
    dead: false,
    async pass() {
      activity.steps += 1;
      if (process.dead) await never();
      if (process.stepsLeft <= 0) {
        for (const task of process.tasks) task.stoodStill = true;
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else process.stepsLeft -= 1;
    },
    goOn() {
      process.stepsLeft = Number.POSITIVE_INFINITY;
      for (const one of waiting.splice(0)) one();
    },
    run(deliveryId, work) {
      const task: Task = { deliveryId, stoodStill: false };
      process.tasks.add(task);
      void work(task)
        .catch((error: unknown) => {
          activity.failure ??= error;
        })
        .finally(() => process.tasks.delete(task));
    },
  };
  return process;
}

export const never = () => new Promise<never>(() => undefined);

/** Called for every command after Redis has replied, in order. */
type Observer = (command: string, args: readonly unknown[], answer: unknown) => void;

/** The store as a process uses it. */
export function storeOf(store: Store, process: Process, observe: Observer): Store {
  const redis = new Proxy(store.redis, {
    get(target, name: string) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      if (name === 'multi') return value.bind(target);
      return async (...args: unknown[]) => {
        await process.pass();
        let answer: unknown = await value.apply(target, args);
        observe(name, args, answer);
        if (isResent(name)) {
          answer = await value.apply(target, args);
          observe(name, args, answer);
        }
        activity.steps += 1;
        return process.dead ? await never() : answer;
      };
    },
  });
  return { ...store, redis };
}
