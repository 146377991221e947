/** Loaded into a process before its app: on SIGUSR2, says on stdout which flags of V8 the app has set. */
import { syncBuiltinESMExports } from 'node:module';
import v8 from 'node:v8';

const flags: string[] = [];
const { setFlagsFromString } = v8;
v8.setFlagsFromString = (flag) => {
  flags.push(flag);
  setFlagsFromString(flag);
};
syncBuiltinESMExports();

process.on('SIGUSR2', () => process.stdout.write(`${JSON.stringify({ msg: 'flags', flags })}\n`));
