/** Reads the options of a developer's command, and ends it with one line about an option that it does not know. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** Returns the values of the options. An unknown option, or one without its value, ends the process with code 2. */
export function readArguments<const T extends ParseArgsOptionsConfig>(options: T) {
  try {
    return parseArgs({ options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    const names = Object.entries(options).map(([name, { type }]) => (type === 'string' ? `--${name}=…` : `--${name}`));
    return stopWith(`${error instanceof Error ? error.message.split('. ')[0] : error}. Options: ${names.join(', ')}.`);
  }
}

/** Returns the value of an option that is a number, at least 0. */
export function readNumber(name: string, text: string): number {
  const value = Number(text);
  return text.trim() === '' || !(value >= 0)
    ? stopWith(`--${name} takes a number, not ${JSON.stringify(text)}.`)
    : value;
}

/** Prints the message and ends the process with code 2. */
export function stopWith(message: string): never {
  console.error(message);
  process.exit(2);
}
