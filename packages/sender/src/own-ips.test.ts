/** The IP addresses of this machine. */
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { expect, it } from '@jest/globals';
import { checkIp, checkUrl, parseNetworks } from './index.ts';
import { followOwnIps } from './own-ips.ts';

const withAddress = (address: string) => ({ address }) as NetworkInterfaceInfo;

it('are known in every spelling, whatever their interface', () => {
  const interfaces = { lo: [withAddress('127.0.0.1')], eth0: [withAddress('8.8.4.4'), withAddress('2606:4700::a')] };
  const isOwn = followOwnIps(() => interfaces);
  for (const ip of ['8.8.4.4', '::ffff:8.8.4.4', '2606:4700::a', '2606:4700:0:0::000a'])
    expect([ip, isOwn(ip)]).toEqual([ip, true]);
  for (const ip of ['8.8.8.8', '2606:4700::b']) expect([ip, isOwn(ip)]).toEqual([ip, false]);
});

it('are read again after 5 seconds', () => {
  let address = '8.8.4.4';
  let nowMs = 0;
  const isOwn = followOwnIps(
    () => ({ eth0: [withAddress(address)] }),
    () => nowMs,
  );
  expect(isOwn('8.8.4.4')).toBe(true);
  address = '8.8.8.8';
  nowMs = 4_999;
  expect(isOwn('8.8.8.8')).toBe(false);
  nowMs = 5_000;
  expect([isOwn('8.8.8.8'), isOwn('8.8.4.4')]).toEqual([true, false]);
});

it('are unknown where the system does not tell', () => {
  const isOwn = followOwnIps(() => {
    throw new Error('A system error occurred: uv_interface_addresses returned Unknown system error 97');
  });
  expect(isOwn('8.8.4.4')).toBe(false);
});

it('are refused by the guard as local, also if they are of another range, unless they are exempt', () => {
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address));
  for (const ip of own) {
    const bits = ip.includes(':') ? 128 : 32;
    expect([ip, checkIp(ip, [])]).toEqual([ip, 'local_address']);
    expect([ip, checkIp(ip, parseNetworks(`${ip}/${bits}`))]).toEqual([ip, null]);
    expect(checkUrl(`http://${bits === 128 ? `[${ip}]` : ip}/`, [])).toMatchObject({ reason: 'local_address' });
  }
});
