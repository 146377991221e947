/** Settings: what is understood, and that one message names every bad one without its value. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { envDetector } from '@opentelemetry/resources';
import { parseDurationMs } from '@posthorn/core';
import { z } from 'zod';
import {
  durationListMs,
  loadSettings,
  operatorTokens,
  publisherKeys,
  sharedSettings,
  warnOfShortKeys,
} from './index.ts';
import { tracingSettings } from './tracing-settings.ts';

const schema = z.object({ ...sharedSettings(3000), PUBLISHER_KEYS: publisherKeys, OPERATOR_TOKENS: operatorTokens });
const [key1, key2] = ['key-1:'.padEnd(24, 'x'), 'key-2'.padEnd(24, 'y')];
const loadTracing = (env: Record<string, string>) => loadSettings(z.object(tracingSettings()), env);
const good = { PUBLISHER_KEYS: `a:both:${key1}`, OPERATOR_TOKENS: `o:${key2}` };

describe('settings', () => {
  it('have the defaults of the interface, and a blank one counts as not set', () => {
    expect(loadSettings(schema, { ...good, PORT: ' ', KEY_PREFIX: '' })).toMatchObject({
      REDIS_URL: 'redis://127.0.0.1:6379',
      KEY_PREFIX: 'posthorn',
      PARTITIONS: 1,
      HOST: '127.0.0.1',
      PORT: 3000,
      RETENTION: 30 * 86_400_000,
      RETENTION_SUCCEEDED: 7 * 86_400_000,
      SHUTDOWN_GRACE: 20_000,
      LOG_LEVEL: 'info',
    });
  });
  it('are all named in one message if they are bad, without their values', () => {
    const bad = {
      PUBLISHER_KEYS: 'a:everywhere:hunter2',
      PORT: '70000',
      REDIS_URL: 'http://u:hunter2@h',
      RETENTION: '30',
      KEY_PREFIX: '{x}',
      LOG_LEVEL: 'loud',
    };
    let message = '';
    try {
      loadSettings(schema, bad);
    } catch (error) {
      message = (error as Error).message;
    }
    for (const name of [...Object.keys(bad), 'OPERATOR_TOKENS']) expect(message).toContain(name);
    expect(message).not.toMatch(/hunter2|70000|loud/);
    expect(message).toContain('OPERATOR_TOKENS: is required');
    expect(message).toContain('LOG_LEVEL: must be one of trace, debug, info,');
  });
  it('may come from a file if they are secret, with one entry of a list on each line', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'posthorn-settings-')), 'keys');
    writeFileSync(file, `a:both:${key1}\nb:sandbox:${key2}\n`);
    const { PUBLISHER_KEYS: _, ...others } = good;
    const read = (env: Record<string, string>) => loadSettings(schema, { ...others, ...env });
    expect(read({ PUBLISHER_KEYS_FILE: file }).PUBLISHER_KEYS).toMatchObject([{ name: 'a' }, { name: 'b' }]);
    expect(() => read({ ...good, PUBLISHER_KEYS_FILE: file })).toThrow(
      /PUBLISHER_KEYS, PUBLISHER_KEYS_FILE: set only one/,
    );
    expect(() => read({ PUBLISHER_KEYS_FILE: `${file}.none`, PORT: 'x' })).toThrow(
      /PUBLISHER_KEYS_FILE: the file can't be read \(ENOENT\)\n {2}PORT: /,
    );
    expect(() => read({ ...good, PORT_FILE: file })).not.toThrow();
    writeFileSync(file, ' \n');
    for (const name of ['PUBLISHER_KEYS', 'REDIS_SENTINEL_PASSWORD'])
      expect(() => read({ [`${name}_FILE`]: file })).toThrow(`  ${name}_FILE: the file is empty`);
    rmSync(dirname(file), { recursive: true });
  });
  it.each([
    ['90s', 90_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['30d', 2_592_000_000],
    ['0s', undefined],
    ['-1s', undefined],
    ['10', undefined],
    ['1 s', undefined],
    ['1w', undefined],
    ['99999d', undefined],
  ])('read the duration %j as %s ms', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });
  it('read retry delays as a list of durations', () => {
    expect(durationListMs.parse('1m,5m, 30m')).toEqual([60_000, 300_000, 1_800_000]);
    expect(durationListMs.safeParse('1m,,5m').success).toBe(false);
  });
  it('require a name and an environment for each key, and each key once', () => {
    expect(publisherKeys.parse(`a:sandbox:${key1}, b:both:${key2}`)).toEqual([
      { name: 'a', environment: 'sandbox', key: key1 },
      { name: 'b', environment: 'both', key: key2 },
    ]);
    for (const bad of [
      'a:sandbox',
      `a:x:${key1}`,
      'a:both:',
      `a:both:${key1},b:sandbox:${key1}`,
      `a:both:${key1},a:both:${key1}`,
      ',',
    ])
      expect(publisherKeys.safeParse(bad).success).toBe(false);
    expect(publisherKeys.parse(`a:both:${key1},a:both:${key2}`)).toHaveLength(2);
  });
  it('take keys of any length, and warn of those shorter than 24 characters by name', () => {
    const short = { PUBLISHER_KEYS: `good:both:${key1},short:both:${key2.slice(1)}`, OPERATOR_TOKENS: 'o:hunter2' };
    const warnings: string[] = [];
    const logger = { warn: (message: string) => warnings.push(message) };
    const settings = loadSettings(schema, short);
    warnOfShortKeys('PUBLISHER_KEYS', settings.PUBLISHER_KEYS, logger);
    warnOfShortKeys('OPERATOR_TOKENS', settings.OPERATOR_TOKENS, logger);
    warnOfShortKeys('OPERATOR_TOKENS', loadSettings(schema, good).OPERATOR_TOKENS, logger);
    expect(warnings).toEqual([
      expect.stringMatching(/^PUBLISHER_KEYS: .* for short: .*openssl rand -base64 24$/),
      expect.stringMatching(/^OPERATOR_TOKENS: .* for o: /),
    ]);
    expect(warnings.join()).not.toMatch(/hunter2|yyyy/);
  });
  it('do not show a key that stands in the place of its name', () => {
    const swapped = { PUBLISHER_KEYS: `a:both:${key1},${key2}:both:b`, OPERATOR_TOKENS: `${key2}:\u{3a9}` };
    expect(() => loadSettings(schema, swapped)).toThrow(
      /PUBLISHER_KEYS: .*swapped for entry 2\n.*OPERATOR_TOKENS: .*swapped for entry 1\n.*others for entry 1/s,
    );
    expect(() => loadSettings(schema, swapped)).not.toThrow(key2);
  });
  it('refuse keys and headers that no header can carry, without their values', () => {
    const unsendable = ['\u{3a9}', '\u{e9}', '\u{1}', '\u{7f}'].map((character) =>
      `hunter2${character}`.padEnd(24, 'x'),
    );
    for (const key of unsendable) {
      const bad = { PUBLISHER_KEYS: `good:both:${key1},bad:both:${key}`, OPERATOR_TOKENS: `o:${key}` };
      expect(() => loadSettings(schema, bad)).toThrow(
        /PUBLISHER_KEYS: must have printable ASCII .* for bad\n.*OPERATOR_TOKENS: must have printable ASCII .* for o$/,
      );
      expect(() => loadSettings(schema, bad)).not.toThrow(/hunter2/);
    }
    expect(operatorTokens.parse(`o:${key2} ~!`)).toEqual([{ name: 'o', key: `${key2} ~!` }]);
    for (const name of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'] as const) {
      const load = (headers: string) => loadTracing({ [name]: headers })[name];
      for (const headers of ['a=b, api-key = word=', 'authorization=Basic%20YTpi']) expect(load(headers)).toBe(headers);
      for (const headers of ['a=b,key=hunter2%0A', 'key=hunter2\u{3a9}', 'hunter2 k=v', 'key=hunter2%']) {
        expect(() => load(headers)).toThrow(`${name}: must have names and values that HTTP headers can`);
        expect(() => load(headers)).not.toThrow(/hunter2/);
      }
    }
  });
  it('refuse a user and a password for a collector that are not percent-encoded', () => {
    for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
      expect(() => loadTracing({ [name]: 'http://u:hunter2%@h' })).toThrow(
        `${name}: must be an http or https URL, with`,
      );
      expect(() => loadTracing({ [name]: 'http://u:hunter2%@h' })).not.toThrow(/hunter2/);
      expect(() => loadTracing({ [name]: 'http://u:50%25@h' })).not.toThrow();
    }
  });
  it('read attributes of the process as the SDK does, and refuse those with which it would leave out all', () => {
    const before = process.env;
    const readBySdk = (text: string) => {
      process.env = { OTEL_RESOURCE_ATTRIBUTES: text };
      return envDetector.detect().attributes;
    };
    const read = (text: string) => loadTracing({ OTEL_RESOURCE_ATTRIBUTES: text }).OTEL_RESOURCE_ATTRIBUTES;
    try {
      for (const good of [
        'a=b',
        ' a = b c ,, d=',
        'a=1%2C2%3D3%25',
        'a=b,a=c',
        `${'n'.repeat(255)}=${'v'.repeat(255)}`,
      ])
        expect(read(good)).toEqual(readBySdk(good));
      for (const bad of [
        'team=a,k8s.labels=x=y',
        'rate=100%',
        'a',
        '=b',
        `a=${'v'.repeat(256)}`,
        `${'n'.repeat(256)}=v`,
      ]) {
        expect(readBySdk(bad)).toEqual({});
        expect(() => read(bad)).toThrow(/OTEL_RESOURCE_ATTRIBUTES: must be name=value,name=value, each up to 255/);
      }
    } finally {
      process.env = before;
    }
  });
  it('refuse ports and passwords of Redis that cannot be used, without their values', () => {
    for (const [name, bad] of [
      ['REDIS_URL', 'redis://:hunter2%@h'],
      ['REDIS_URL', 'redis://u%zz:hunter2@h'],
      ['REDIS_URL', 'redis://:hunter2/x@h'],
      ['REDIS_URL', 'redis://:hunter2#x@h'],
      ['REDIS_URL', 'redis://:x@hunter2#x@h'],
      ['REDIS_URL', 'redis://:x@hunter2?x@h'],
      ['REDIS_CLUSTER_NODES', 'h:65535,hunter2:65536'],
      ['REDIS_SENTINELS', 'hunter2:99999'],
      ['REDIS_URL', 'redis://hunter2:0'],
      ['REDIS_CLUSTER_NODES', 'h:7000,hunter2:0'],
      ['REDIS_SENTINELS', 'hunter2:00'],
    ] as const) {
      expect(() => loadSettings(schema, { ...good, [name]: bad })).toThrow(`${name}: must be`);
      expect(() => loadSettings(schema, { ...good, [name]: bad })).not.toThrow(/hunter2/);
    }
    expect(() => loadSettings(schema, { ...good, REDIS_URL: 'redis://:a/b@h' })).toThrow('/ as %2F');
    expect(loadSettings(schema, { ...good, REDIS_URL: 'redis://:50%25@h' }).REDIS_URL).toBe('redis://:50%25@h');
  });
  it('read nodes by name and by IP', () => {
    const { REDIS_CLUSTER_NODES } = loadSettings(schema, {
      ...good,
      REDIS_CLUSTER_NODES: 'a:1, 10.0.0.1:2,[fd00::1]:3',
    });
    expect(REDIS_CLUSTER_NODES).toEqual([
      { host: 'a', port: 1 },
      { host: '10.0.0.1', port: 2 },
      { host: 'fd00::1', port: 3 },
    ]);
  });
  it('take an IP to listen on as it is in a URL', () => {
    for (const HOST of ['::1', '[::1]']) expect(loadSettings(schema, { ...good, HOST }).HOST).toBe('::1');
  });
  it('read trusted proxies as networks', () => {
    const load = (TRUSTED_PROXIES: string) => loadSettings(schema, { ...good, TRUSTED_PROXIES }).TRUSTED_PROXIES;
    expect(load('10.0.0.0/8, fd00::/8')).toEqual(['10.0.0.0/8', 'fd00::/8']);
    // ipaddr.js would read the last two as 0.0.0.10/8 and 8.0.0.0/8.
    for (const bad of ['10.0.0.1', '10.0.0.0/40', 'proxy', ',', '10/8', '010.0.0.0/8'])
      expect(() => load(bad)).toThrow(/TRUSTED_PROXIES/);
  });
});
