/**
 * Builds ingest, worker and console into `apps/<app>/dist`: each with the packages that it needs in a few files of
 * plain JavaScript, unless the existing build is from the same sources. A process that runs such a build loads neither
 * the code that removes types nor unused parts of packages, so it takes about 40 MB less memory and starts sooner. The
 * files are CommonJS: unlike `require`, an `import` of node:http reads all of its exports, which loads `fetch` and all
 * that it needs.
 */
import { cpSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { RolldownPlugin } from 'rolldown';
import { buildFolder, isBuiltFrom } from './build-folder.ts';
import { root } from './folder.ts';

const BUILT_APPS = ['ingest', 'worker', 'console'] as const;

/**
 * Packages that are loaded from node_modules: those that read files beside their own, and iconv-lite, whose tables are
 * not needed for UTF-8.
 */
const NOT_BUNDLED = [/^@bull-board\//, /^swagger-ui-dist(\/|$)/, /^iconv-lite$/];
/**
 * Packages whose entry loads all their parts, with the parts that the apps need and their files. The build fails if an
 * app imports another name from one of them.
 */
const PARTS: Record<string, Record<string, string>> = {
  undici: { Client: 'lib/dispatcher/client.js' },
  'rate-limiter-flexible': {
    RateLimiterMemory: 'lib/RateLimiterMemory.js',
    RateLimiterRedis: 'lib/RateLimiterRedis.js',
    RateLimiterRes: 'lib/RateLimiterRes.js',
    RLWrapperTimeouts: 'lib/RLWrapperTimeouts.js',
  },
};
/**
 * BullMQ's modules for `import`, from which the build can leave out unused parts. Its entry for `require` loads all of
 * them: a client of PostgreSQL, for instance.
 */
const ENTRIES = { bullmq: join(root, 'node_modules/bullmq/dist/esm/index.js') };
/** Files that do nothing when they are loaded: the build may leave out their exports that no file imports. */
const WITHOUT_EFFECTS = /\/packages\/[^/]+\/src\/|\/node_modules\/bullmq\//;
/** Packages that the apps load but never call, by name, and why they don't. A stand-in throws when it is used. */
const LEFT_OUT: Record<string, { exported: string; why: string }> = {
  'cron-parser': { exported: 'CronExpressionParser', why: 'Posthorn has no jobs by cron expressions' },
};
/**
 * Code of packages that the build replaces, by the end of the file's path. got makes an `Intl.ListFormat` at once,
 * which loads 4 MB of language data, only for messages of errors about its own options. prom-client loads the API of
 * OpenTelemetry at once, only for exemplars, which Posthorn does not turn on.
 */
const REPLACED: Record<string, { from: string; to: string }> = {
  '/node_modules/@sindresorhus/is/distribution/index.js': {
    from: "new Intl.ListFormat('en', ",
    to: "(() => ({ format: (items) => items.join(', ') }))(",
  },
  '/node_modules/prom-client/lib/metrics/processCpuTotal.js': {
    from: "require('@opentelemetry/api')",
    to: 'undefined',
  },
};
/** A file in each build that lists the sources of each built file, for people and tests. */
const MODULES = 'modules.txt';
/** Read at run time, by a path from the file that reads them (packages/store/src/script.ts). */
const SCRIPTS = join(root, 'packages/store/src/lua');

/**
 * Builds what has changed; reports the start with `say`. Several processes may build at once. Without development
 * packages it removes builds of other sources instead: the apps then run from their sources.
 */
export async function buildApps(say: (line: string) => void): Promise<void> {
  const stale = BUILT_APPS.filter((app) => !isBuiltFrom(folderOf(app), sourcesOf(app)));
  if (stale.length === 0) return;
  if (!existsSync(join(root, 'node_modules/rolldown'))) {
    for (const app of stale) rmSync(folderOf(app), { recursive: true, force: true });
    return say('Without development packages, the apps run from their sources, with more memory.');
  }
  say(`Building ${stale.join(', ')} ...`);
  for (const app of stale) await buildApp(folderOf(app), `apps/${app}/src/main.ts`, sourcesOf(app));
}

/** Builds one app into a folder from its entry, a path from the root of the repository. */
export async function buildApp(folder: string, entry: string, sources: readonly string[]): Promise<void> {
  await buildFolder(folder, sources, async (into) => {
    await bundle(join(root, entry), into);
    cpSync(SCRIPTS, join(into, 'lua'), { recursive: true });
  });
}

/**
 * As deep as the sources, so that paths relative to a file (package.json, the page, the compile cache) are right in
 * both.
 */
const folderOf = (app: string) => join(root, `apps/${app}/dist`);

async function bundle(input: string, dir: string): Promise<void> {
  // A development package.
  const { build } = await import('rolldown');
  const [{ youngClosures }, { breakLines }] = await Promise.all([
    import('./young-closures.ts'),
    import('./break-lines.ts'),
  ]);
  const { output } = await build({
    input,
    platform: 'node',
    transform: { target: 'node24' },
    external: NOT_BUNDLED,
    resolve: { alias: ENTRIES },
    plugins: [onlyParts(), leaveOut(), replaceCode()],
    treeshake: { moduleSideEffects: [{ test: WITHOUT_EFFECTS, sideEffects: false }] },
    logLevel: 'warn',
    output: {
      dir,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      comments: false,
      // Names stay, so that the stack of an error is readable.
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    },
  });
  const modules = output.flatMap((chunk) => {
    // Modules outside the repository are made by the plugins.
    const files = chunk.type === 'chunk' ? Object.keys(chunk.modules).filter((id) => id.startsWith(root)) : [];
    return files.map((id) => `${chunk.fileName} ${relative(root, id)}`);
  });
  writeFileSync(join(dir, MODULES), `${modules.sort().join('\n')}\n`);
  // Not by a plugin: the bundler would print the escapes as the characters themselves.
  for (const file of globSync('*.cjs', { cwd: dir }).map((name) => join(dir, name)))
    writeFileSync(file, breakLines(youngClosures(escapeToAscii(readFileSync(file, 'utf8')))));
}

/** Replaces the entry of each package of `PARTS`. */
function onlyParts(): RolldownPlugin {
  const PREFIX = '\0part of ';
  return {
    name: 'only-parts',
    async resolveId(id, importer) {
      if (!(id in PARTS)) return null;
      const entry = await this.resolve(id, importer, { skipSelf: true });
      return entry && `${PREFIX}${id} ${dirname(entry.id)}`;
    },
    load(id) {
      if (!id.startsWith(PREFIX)) return null;
      const rest = id.slice(PREFIX.length);
      const name = rest.slice(0, rest.indexOf(' '));
      const folder = rest.slice(name.length + 1);
      const parts = Object.entries(PARTS[name] ?? {});
      const paths = parts.map(
        ([part, path]) => `export { default as ${part} } from ${JSON.stringify(join(folder, path))};`,
      );
      return paths.join('\n');
    },
  };
}

/** Replaces the packages of `LEFT_OUT`. */
function leaveOut(): RolldownPlugin {
  const PREFIX = '\0instead of ';
  return {
    name: 'leave-out',
    resolveId: (id) => (id in LEFT_OUT ? `${PREFIX}${id}` : null),
    load(id) {
      const name = id.slice(PREFIX.length);
      const { exported, why } = (id.startsWith(PREFIX) && LEFT_OUT[name]) || {};
      if (exported === undefined) return null;
      const error = `new Error(${JSON.stringify(`${name} is left out of the build: ${why}`)})`;
      return `export const ${exported} = new Proxy({}, { get() { throw ${error}; } });`;
    },
  };
}

/** Makes the replacements of `REPLACED`. The build fails if a file no longer contains the text to replace. */
function replaceCode(): RolldownPlugin {
  return {
    name: 'replace-code',
    transform(code, id) {
      const replaced = Object.entries(REPLACED).find(([end]) => id.endsWith(end))?.[1];
      if (replaced === undefined) return null;
      if (!code.includes(replaced.from)) throw new Error(`${id} has no ${replaced.from}`);
      return { code: code.replaceAll(replaced.from, replaced.to), map: null };
    },
  };
}

/** Escapes all characters beyond ASCII: with a single one of them, V8 keeps two bytes for each character of a file. */
function escapeToAscii(code: string): string {
  // A needless escape such as `\─` would become a backslash and letters.
  const escaped = /(?<!\\)(?:\\\\)*\\[\u0080-\uffff]/.exec(code);
  if (escaped !== null) throw new Error(`This can't be written in ASCII: ${escaped[0]}`);
  return code.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What the build of an app depends on. */
export function sourcesOf(app: string): string[] {
  const patterns = [`apps/${app}/{package.json,src/**/*}`, 'packages/*/{package.json,src/**/*}', 'package-lock.json'];
  return [
    ...globSync(patterns, { cwd: root, exclude: (file) => file.endsWith('.test.ts') }),
    'scripts/build-apps.ts',
    'scripts/break-lines.ts',
    'scripts/build-folder.ts',
    'scripts/young-closures.ts',
  ].map((file) => join(root, file));
}
