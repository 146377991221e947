/** Keeps one core busy until the process that started it ends or disconnects. */

/** Short enough to notice the end of the parent soon. */
const SLICE_MS = 50;

// Also fires when the parent is killed: the operating system closes its end of the channel.
process.on('disconnect', () => process.exit());
// Ctrl-C in a terminal reaches the whole process group; the parent decides when the load ends.
process.on('SIGINT', () => undefined);

function spin(): void {
  const endsAt = performance.now() + SLICE_MS;
  while (performance.now() < endsAt);
  setImmediate(spin);
}
spin();
