/** Loaded into a process before its app: each message of the parent is answered with the CPU time used so far, in microseconds. */
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
// The app alone decides how long it runs.
process.channel?.unref();
