#!/usr/bin/env node
/** The command `posthorn`. Plain JavaScript, so that an older Node can say what is missing. */
if (process.features.typescript) {
  const { cacheCompiledCode } = await import('@posthorn/runtime/compile-cache');
  cacheCompiledCode();
  await import('../src/main.ts');
} else {
  process.stderr.write(
    `posthorn needs Node 24, and this is Node ${process.versions.node}. Install Node 24, or run in the repository: npm ci --include=dev && npx posthorn\n`,
  );
  process.exitCode = 1;
}
