/** The `lookup` of every connection that the sender makes: it resolves a name and refuses addresses that may not be sent to. */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type AllowedNetworks, checkIp } from './guard.ts';
import { NameError, type Resolve } from './resolve.ts';

/** A name resolved to an address that may not be sent to. */
export class AddressBlocked extends Error {
  override name = 'AddressBlocked';
  readonly reason: 'private_address' | 'local_address';
  readonly ip: string;
  constructor(reason: 'private_address' | 'local_address', ip: string) {
    super(`The name resolves to ${ip}, which is not a public address.`);
    this.reason = reason;
    this.ip = ip;
  }
}

/** The IP may not be connected to at this moment. */
export class NotAdmitted extends Error {
  override name = 'NotAdmitted';
  readonly ip: string;
  constructor(ip: string) {
    super(`${ip} is not admitted`);
    this.ip = ip;
  }
}

/**
 * A `lookup` for `net.connect`: whatever it returns is what gets connected to. Fails with `AddressBlocked` where any address of the name
 * may not be sent to, and with `NameError` where there is none.
 */
export function guardedLookup(allowed: AllowedNetworks, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolveChecked(hostname, allowed, resolve).then(
      (addresses) => {
        const wanted = addresses.filter(({ family }) => !options.family || options.family === family);
        const [first] = wanted;
        if (first === undefined) callback(new NameError(hostname, 'ENODATA'), '');
        else if (options.all) callback(null, wanted);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

async function resolveChecked(hostname: string, allowed: AllowedNetworks, resolve: Resolve): Promise<LookupAddress[]> {
  const addresses = await resolve(hostname).catch((error: NodeJS.ErrnoException) => {
    throw error instanceof NameError ? error : new NameError(hostname, error.code ?? 'UNKNOWN');
  });
  if (addresses.length === 0) throw new NameError(hostname, 'ENODATA');
  for (const { address } of addresses) {
    const reason = checkIp(address, allowed);
    if (reason !== null) throw new AddressBlocked(reason, address);
  }
  return addresses;
}
