/** Checks whether a host can be reached: it resolves the name and connects, and sends nothing. */
import { connect, isIP } from 'node:net';
import { bareHost, withTimeLimit } from '@posthorn/core';
import { createCheckedUrls } from './checked-urls.ts';
import type { AllowedNetworks } from './guard.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { NameError, type Resolve } from './resolve.ts';
import { IpRefused } from './result.ts';

/**
 * `dns`: the name did not resolve; `connection`: no connection was established; `blocked`: the guard refuses the
 * address.
 */
export type ProbeResult = 'reached' | 'dns' | 'connection' | 'blocked';

/** Both functions resolve within the time limit and never reject. */
export interface Probe {
  /** Resolves a name. Returns `dns` for an IP address, which is no name. */
  name(hostname: string): Promise<ProbeResult>;
  /** Connects to the host of a URL. A refused connection counts as reached: the host has responded. */
  host(url: string): Promise<ProbeResult>;
}

interface ProbeOptions {
  allowedNetworks: AllowedNetworks;
  resolve: Resolve;
  timeoutMs: number;
  /** Called for each host that was reached. */
  onConnected: (origin: string, ip: string) => void;
}

export function createProbe({ allowedNetworks, resolve, timeoutMs, onConnected }: ProbeOptions): Probe {
  const checkedUrlOf = createCheckedUrls(allowedNetworks);
  const lookup = guardedLookup(allowedNetworks, resolve);
  return {
    async name(hostname) {
      if (isIP(bareHost(hostname)) !== 0) return 'dns';
      return await withTimeLimit(timeoutMs, resolve(hostname)).then(
        () => 'reached',
        () => 'dns',
      );
    },
    host: (url) =>
      new Promise((done) => {
        const to = checkedUrlOf(url);
        if ('kind' in to) return done('blocked');
        let failure: ProbeResult = 'dns';
        let ip = '';
        const socket = connect({
          host: to.hostname,
          port: to.port,
          autoSelectFamily: true,
          lookup: (hostname, options, callback) =>
            lookup(hostname, options, (error, ...found) => {
              failure = error instanceof NameError ? 'dns' : error instanceof IpRefused ? 'blocked' : 'connection';
              callback(error, ...found);
            }),
        });
        const finish = (result: ProbeResult) => {
          clearTimeout(limit);
          socket.destroy();
          if (result === 'reached') onConnected(to.origin, ip);
          done(result);
        };
        // No lookup is made for an IP address.
        const failed = () => finish(ip === '' ? failure : 'connection');
        // `setImmediate`: what has arrived while the process was blocked is read first.
        const limit = setTimeout(() => setImmediate(failed), timeoutMs);
        socket.on('connectionAttempt', (tried) => {
          ip = tried;
        });
        socket.once('connect', () => finish('reached'));
        // This listener stays: an error after the end must not end the process.
        socket.on('error', (error: NodeJS.ErrnoException) => {
          if (error.code === 'ECONNREFUSED') finish('reached');
          else failed();
        });
      }),
  };
}
