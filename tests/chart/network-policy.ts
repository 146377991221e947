/** Says which addresses a NetworkPolicy lets its pods reach. */
import { BlockList, isIPv6 } from 'node:net';
import type { Manifest } from './schemas.ts';

interface IpBlock {
  cidr: string;
  except?: string[];
}
export interface NetworkPolicy extends Manifest {
  spec: {
    podSelector: { matchLabels: Record<string, string> };
    egress: { to?: { ipBlock?: IpBlock }[]; ports?: { port: number; protocol: string }[] }[];
  };
}

export interface Network {
  base: string;
  bits: number;
}

/** The parts of a network in CIDR form. */
export function networkOf(cidr: string): Network {
  const [base = '', bits] = cidr.split('/');
  return { base, bits: Number(bits) };
}

const familyOf = (ip: string) => (isIPv6(ip) ? 'ipv6' : 'ipv4');

/** A list that has the addresses of some networks. */
function listOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const { base, bits } of cidrs.map(networkOf)) list.addSubnet(base, bits, familyOf(base));
  return list;
}

/** Whether a network contains an address. */
export const contains = (cidr: string, ip: string) =>
  familyOf(networkOf(cidr).base) === familyOf(ip) && listOf([cidr]).check(ip, familyOf(ip));

/** Returns whether a policy lets its pods open a connection to any port of an address. */
export function reachOf(policy: NetworkPolicy): (ip: string) => boolean {
  const blocks = policy.spec.egress
    .filter(({ ports }) => ports === undefined)
    .flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []))
    .map(({ cidr, except = [] }) => [listOf([cidr]), listOf(except)] as const);
  return (ip) => blocks.some(([all, except]) => all.check(ip, familyOf(ip)) && !except.check(ip, familyOf(ip)));
}

/** The networks that a policy names. */
export const blocksOf = (policy: NetworkPolicy) =>
  policy.spec.egress.flatMap(({ to = [] }) =>
    to.flatMap(({ ipBlock }) => (ipBlock ? [ipBlock.cidr, ...(ipBlock.except ?? [])] : [])),
  );

/** The first or last address of a network, or one of its neighbours. */
export function edgeOf(cidr: string, step: number, atEnd: boolean): string {
  const { base, bits } = networkOf(cidr);
  const family = familyOf(base);
  const size = family === 'ipv6' ? 128n : 32n;
  const edge = atEnd ? numberOf(base) + (1n << (size - BigInt(bits))) - 1n : numberOf(base);
  return textOf((edge + BigInt(step) + (1n << size)) % (1n << size), family);
}

function numberOf(ip: string): bigint {
  if (!isIPv6(ip)) return ip.split('.').reduce((value, part) => value * 256n + BigInt(part), 0n);
  const [head = [], tail = []] = ip.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return groups.reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n);
}

/** The text of the address with a number. */
export function textOf(value: bigint, family: 'ipv4' | 'ipv6'): string {
  const [count, bits, base, separator] = family === 'ipv6' ? ([8, 16, 16, ':'] as const) : ([4, 8, 10, '.'] as const);
  const part = (i: number) => (value >> BigInt(bits * (count - 1 - i))) & ((1n << BigInt(bits)) - 1n);
  return Array.from({ length: count }, (_part, i) => part(i).toString(base)).join(separator);
}
