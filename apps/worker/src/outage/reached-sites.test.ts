/** Which names and hosts count as one witness, and how they get older. */
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { createReachedSites, domainOf, networkOf } from './reached-sites.ts';

describe('the group of a site', () => {
  it('is the registered domain of a name', () => {
    const domains = {
      'example.com': ['a.b.example.com', 'example.com', 'B.example.com.'],
      'example.co.uk': ['shop.example.co.uk', 'example.co.uk'],
      'example.chiyoda.tokyo.jp': ['a.example.chiyoda.tokyo.jp', 'b.example.chiyoda.tokyo.jp'],
      'fly.dev': ['x.fly.dev', 'y.fly.dev'],
      localhost: ['localhost', 'LOCALHOST'],
    };
    for (const [domain, names] of Object.entries(domains))
      for (const name of names) expect([name, domainOf(name)]).toEqual([name, domain]);
  });
  it('is the network of an IP address', () => {
    expect(['10.1.2.3', '::ffff:10.1.2.4', '2001:db8:1:2::3', '2001:db8:1::9'].map(networkOf)).toEqual([
      '10.1.2',
      '10.1.2',
      '2001:db8:1',
      '2001:db8:1',
    ]);
  });
});

describe('reached sites', () => {
  it('expire only when other sites are reached later', () => {
    const sites = createReachedSites();
    sites.resolved('a.example1.com', 0);
    sites.resolved('a.example2.com', HOUR_MS);
    sites.connected('https://a.example1.com', '192.0.2.1', 0);
    const names = () => sites.pick('dns', 10).map(({ at }) => at);
    expect(names().sort()).toEqual(['a.example1.com', 'a.example2.com']);
    sites.resolved('b.example3.com', HOUR_MS + 1);
    expect(names().sort()).toEqual(['a.example2.com', 'b.example3.com']);
    expect(sites.pick('connection', 10).map(({ at }) => at)).toEqual(['https://a.example1.com']);
    expect(sites.pick('dns', 1)).toHaveLength(1);
  });
  it('are one for each name, whatever the name resolves to', () => {
    const sites = createReachedSites();
    const others = [1, 2, 3].map((i) => `https://hooks.example${i}.com`);
    for (const [i, origin] of others.entries()) sites.connected(origin, `192.0.${i}.1`, 0);
    sites.takeUnsaved(0);
    for (let i = 0; i < 1_500; i++) sites.connected('https://moving.test', `192.${i % 250}.${i % 7}.9`, 1 + i);
    const origins = sites.pick('connection', 20).map(({ at }) => at);
    expect(origins.sort()).toEqual([...others, 'https://moving.test']);
    expect(sites.takeUnsaved(2_000)).toHaveLength(1);
  });
  it('are one for each domain, wherever its names lead', () => {
    const sites = createReachedSites();
    sites.connected('https://hooks.example.com', '192.0.2.1', 0);
    for (let i = 0; i < 300; i++) sites.connected(`https://n${i}.many.test`, `198.51.${i % 250}.9`, 1 + i);
    sites.connected('https://203.0.113.1', '203.0.113.1', 400);
    sites.connected('https://198.18.0.1', '198.18.0.1', 400);
    const origins = sites.pick('connection', 20).map(({ at }) => at);
    expect(origins.sort()).toEqual([
      'https://198.18.0.1',
      'https://203.0.113.1',
      'https://hooks.example.com',
      'https://n299.many.test',
    ]);
  });
  it('are saved when they are new and again after a minute, and can be loaded', () => {
    const sites = createReachedSites();
    sites.resolved('a.example1.com', 0);
    sites.connected('https://a.example1.com', '192.0.2.1', 0);
    const saved = sites.takeUnsaved(0);
    expect(saved).toHaveLength(2);
    sites.resolved('b.example1.com', 59_999);
    expect(sites.takeUnsaved(59_999)).toEqual([]);
    sites.resolved('c.example1.com', 60_000);
    expect(sites.takeUnsaved(60_000)).toEqual(['dns example1.com c.example1.com']);
    const other = createReachedSites();
    other.load([...saved.map((text) => ({ text, reachedAtMs: 0 })), { text: 'nonsense', reachedAtMs: 0 }]);
    expect([...other.pick('dns', 9), ...other.pick('connection', 9)].map(({ at }) => at)).toEqual([
      'a.example1.com',
      'https://a.example1.com',
    ]);
    expect(other.takeUnsaved(0)).toEqual([]);
  });
});
