/** Resolves host names for the sender, and lets through only those whose every IP address may be sent to. */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type AllowedNetworks, checkIp } from './guard.ts';

/** Answers all addresses of a name, or rejects with the resolver's error. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

/** A name resolved to an address that may not be sent to. Carries the code `ADDRESS_BLOCKED`, by which the sender knows it. */
export class AddressBlocked extends Error {
  readonly code = 'ADDRESS_BLOCKED';
  readonly reason: 'private_address' | 'local_address';
  constructor(reason: 'private_address' | 'local_address') {
    super('The name resolves to an address that is not public.');
    this.reason = reason;
  }
}

/** The system's resolver. Lookups of one name at the same time are one: a name that hangs takes one thread, not all. */
export function createResolver(): Resolve {
  const inFlight = new Map<string, Promise<LookupAddress[]>>();
  return (hostname) => {
    let lookup = inFlight.get(hostname);
    if (!lookup) {
      lookup = new Promise<LookupAddress[]>((resolve, reject) => {
        systemLookup(hostname, { all: true, order: 'verbatim' }, (error, addresses) => {
          inFlight.delete(hostname);
          if (error) reject(error);
          else resolve(addresses);
        });
      });
      inFlight.set(hostname, lookup);
    }
    return lookup;
  };
}

/** All addresses of a name. Rejects with `AddressBlocked` where any of them may not be sent to. */
async function resolvePublic(hostname: string, allowed: AllowedNetworks, resolve: Resolve): Promise<LookupAddress[]> {
  const addresses = await resolve(hostname);
  if (addresses.length === 0) throw Object.assign(new Error('The name has no address.'), { code: 'ENOTFOUND' });
  for (const { address } of addresses) {
    const reason = checkIp(address, allowed);
    if (reason !== null) throw new AddressBlocked(reason);
  }
  return addresses;
}

/** The `lookup` of a connection about to be made: what it answers is what will be connected to. */
export function guardedLookup(allowed: AllowedNetworks, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolvePublic(hostname, allowed, resolve).then(
      (addresses) => {
        const wanted = addresses.filter(({ family }) => !options.family || options.family === family);
        const [first] = wanted;
        if (first === undefined)
          callback(Object.assign(new Error('No address of that family.'), { code: 'ENOTFOUND' }), '');
        else if (options.all) callback(null, wanted);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}
