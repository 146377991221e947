/** Keeps one core busy until the process that started it ends or disconnects. */

/** Short enough that the end of the parent is seen at once. */
const SLICE_MS = 50;

// Fires also when the parent is killed: the operating system closes its end of the channel.
process.on('disconnect', () => process.exit());
// Ctrl-C in a terminal reaches the whole process group; the parent decides when the load ends.
process.on('SIGINT', () => undefined);

function spin(): void {
  const endsAt = performance.now() + SLICE_MS;
  while (performance.now() < endsAt);
  setImmediate(spin);
}
spin();
