/** Which attempts count for the same host, and for the same IP. */
import { expect, it } from '@jest/globals';
import { hostOf, ipOf } from './slot-keys.ts';

it('a host counts with its port, unless that is the default one', () => {
  expect(hostOf('https://hooks.example.com:443/a?b')).toBe('hooks.example.com');
  expect(hostOf('https://hooks.example.com:8443/a')).toBe('hooks.example.com:8443');
});

it.each([
  ['93.184.215.14', '93.184.215.14', true],
  ['93.184.215.14', '93.184.215.15', false],
  ['2606:4700:0:1::1', '2606:4700:0:1:ffff::2', true],
  ['2606:4700:0:1::1', '2606:4700:0:2::1', false],
])('the public IPs %s and %s are one: %s, whatever the port', (one, other, isSame) => {
  const isOne = ipOf(one, 'https://a.example/') === ipOf(other, 'https://b.example:8443/');
  expect(isOne).toBe(isSame);
});

it('a private IP counts by port', () => {
  const ofPort = (port: number) => ipOf('127.0.0.1', `http://localhost:${port}/`);
  expect(ofPort(3000)).toBe(ofPort(3000));
  expect(ofPort(3000)).not.toBe(ofPort(3001));
});
