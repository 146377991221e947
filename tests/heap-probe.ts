/**
 * Loaded into a process before its app: on SIGUSR2, says on stdout which flags of V8 the app has set, and how large a
 * half of the young generation is.
 */
import { syncBuiltinESMExports } from 'node:module';
import v8 from 'node:v8';

const flags: string[] = [];
const { setFlagsFromString } = v8;
v8.setFlagsFromString = (flag) => {
  flags.push(flag);
  setFlagsFromString(flag);
};
syncBuiltinESMExports();

process.on('SIGUSR2', () => {
  const young = v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
  const semiSpaceBytes = (young?.space_used_size ?? 0) + (young?.space_available_size ?? 0);
  process.stdout.write(`${JSON.stringify({ msg: 'flags', flags, semiSpaceBytes })}\n`);
});
