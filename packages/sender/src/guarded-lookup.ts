/**
 * The `lookup` of every connection that the sender makes: it resolves a name and refuses IPs that may not be sent to.
 */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type AllowedNetworks, checkIp } from './guard.ts';
import { NameError, type Resolve } from './resolve.ts';
import { IpRefused } from './result.ts';

/**
 * A `lookup` for `net.connect`, which connects to what it returns. Fails with `IpRefused` if any IP of the name may not
 * be sent to, and with `NameError` if the name has none.
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
    if (reason !== null) throw new IpRefused({ kind: 'address_blocked', reason, ip: address });
  }
  return addresses;
}
