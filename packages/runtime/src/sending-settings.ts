/** The settings of the apps that send requests to receivers: the worker, and the console for validations. */
import { DEFAULT_RESPONSE_EXCERPT_BYTES, MAX_RESPONSE_EXCERPT_BYTES } from '@posthorn/core';
import type { Logger } from './logger.ts';
import { parsedBy, setting, timerMs, wholeNumber } from './settings.ts';

/**
 * Functions of packages/signing and packages/sender, which this package may not import. They return undefined or throw
 * for what they can't read.
 */
interface Parsers<Keys, Network> {
  parseEncryptionKeys: (text: string) => Keys | undefined;
  parseNetworks: (text: string) => readonly Network[];
  parseNameServers: (text: string) => string[];
}

/** Warns of networks that the address guard lets through. */
export function warnOfPrivateNetworks(
  { ALLOWED_PRIVATE_NETWORKS: networks }: { ALLOWED_PRIVATE_NETWORKS: readonly unknown[] },
  logger: Logger,
): void {
  if (networks.length === 0) return;
  logger.warn('ALLOWED_PRIVATE_NETWORKS is set: the address guard lets those networks through. Not for production.');
}

/** Returns the schemas of the settings (interface 2). */
export function sendingSettings<Keys, Network>(parsers: Parsers<Keys, Network>) {
  const { parseEncryptionKeys, parseNetworks, parseNameServers } = parsers;
  return {
    SECRET_ENCRYPTION_KEY: setting(
      parsedBy(parseEncryptionKeys, 'must be 32 bytes in base64, or several keys separated by commas'),
      'Secrets',
      'required',
      '32 bytes in base64 that encrypt signing secrets (`openssl rand -base64 32`); several keys: [secrets](secrets.md)',
    ),
    ATTEMPT_TIMEOUT: setting(
      timerMs.default(8_000),
      'Delivery',
      '`8s`',
      'time limit of an attempt; also of a validation by the console',
    ),
    RESPONSE_EXCERPT_BYTES: setting(
      wholeNumber(0, MAX_RESPONSE_EXCERPT_BYTES).default(DEFAULT_RESPONSE_EXCERPT_BYTES),
      'Delivery',
      '`1024`',
      'bytes kept of the response to a failed attempt or a validation, up to 16384; `0` keeps nothing that came back',
    ),
    ALLOWED_PRIVATE_NETWORKS: setting(
      parsedBy(parseNetworks, 'must be networks in CIDR form separated by commas, such as 10.0.0.0/8').default([]),
      'Addresses',
      'none',
      'CIDRs that the address guard allows, for development',
    ),
    DNS_SERVERS: setting(
      parsedBy(parseNameServers, 'must be IP addresses, with or without a port, separated by commas').default([]),
      'Addresses',
      'those of the system',
      'name servers for receivers, `ip` or `ip:port`, separated by commas',
    ),
  };
}
