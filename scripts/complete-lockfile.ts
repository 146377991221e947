/**
 * Completes package-lock.json after `npm install`: npm leaves out optional packages of other platforms that a registry did not
 * give it, and then `npm ci` refuses the lock. Each gets an entry with its exact version and platform, so that `npm ci` knows it
 * and, on this platform, skips it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Entry {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

const file = join(import.meta.dirname, '../package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> };
let added = 0;
for (const parent of Object.values({ ...lock.packages })) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const path = `node_modules/${name}`;
    const words = name.split(/[/-]/);
    const system = SYSTEMS.find((one) => words.includes(one));
    if (lock.packages[path] || system === undefined || !/^\d+\.\d+\.\d+/.test(version)) continue;
    const processor = PROCESSORS.find((one) => words.some((word) => word.startsWith(one)));
    const libc = words.includes('musl') ? 'musl' : words.includes('gnu') ? 'glibc' : undefined;
    lock.packages[path] = {
      version,
      ...(processor === undefined ? {} : { cpu: [processor] }),
      ...(parent.dev ? { dev: true } : {}),
      ...(system === 'linux' && libc !== undefined ? { libc: [libc] } : {}),
      optional: true,
      os: [system],
    };
    added += 1;
  }
}
const sorted = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: sorted }, null, 2)}\n`);
console.log(`package-lock.json: ${added} packages of other platforms added`);
