/**
 * Reads the options of a developer's command, and ends it with its help, or with one line about an option that it does
 * not know.
 */
import { readFileSync } from 'node:fs';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** Returns the values of the options. An unknown option, or one without its value, ends the process with code 2. */
export function readArguments<const T extends ParseArgsOptionsConfig>(options: T) {
  return orStop(options, () => parseArgs({ options, strict: true, allowPositionals: false }).values);
}

/** Like `readArguments`, for a command that passes the other arguments on to another program: they are `rest`. */
export function readArgumentsAndRest<const T extends ParseArgsOptionsConfig>(options: T) {
  return orStop(options, () => {
    const { values, positionals } = parseArgs({ options, strict: true, allowPositionals: true });
    return { values, rest: positionals };
  });
}

function orStop<R>(options: ParseArgsOptionsConfig, read: () => R): R {
  const names = Object.entries(options).map(([name, { type }]) => (type === 'string' ? `--${name}=…` : `--${name}`));
  if (process.argv.includes('--help')) {
    console.log(`${openingComment(process.argv[1]!)}\n\nOptions: ${names.join(', ')}.`);
    process.exit();
  }
  try {
    return read();
  } catch (error) {
    return stopWith(`${error instanceof Error ? error.message.split('. ')[0] : error}. Options: ${names.join(', ')}.`);
  }
}

/** The comment with which the file of a command begins: it says what the command does, and what its options mean. */
function openingComment(file: string): string {
  const [, text = ''] = /\/\*\*(.*?)\*\//s.exec(readFileSync(file, 'utf8')) ?? [];
  return text.replaceAll(/^ *\* ?/gm, '').trim();
}

/** Returns the value of an option that is a number, at least 0. */
export function readNumber(name: string, text: string): number {
  const value = Number(text);
  return text.trim() === '' || !(value >= 0)
    ? stopWith(`--${name} takes a number, not ${JSON.stringify(text)}.`)
    : value;
}

/** Returns the value of an option that is a whole number from `min` to `max`. */
export function readCount(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  return !/^\d+$/.test(text) || value < min || value > max
    ? stopWith(`--${name} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}.`)
    : value;
}

/** Prints the message and ends the process with code 2. */
export function stopWith(message: string): never {
  console.error(message);
  process.exit(2);
}
