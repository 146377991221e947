/** Loaded into a process before its app: on SIGUSR2, says on stdout what of Node itself is loaded. Not TypeScript, which would load what removes types. */
process.on('SIGUSR2', () => {
  process.stdout.write(`${JSON.stringify({ msg: 'loaded', modules: process.moduleLoadList })}\n`);
});
