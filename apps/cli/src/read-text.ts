/** Reads the text that a command is given in a file or on the standard input. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { UserError } from './user-error.ts';

/**
 * Resolves with the text of a file, or of the standard input for `-`, with its byte order mark if it has one. Throws
 * `UserError` if it can't be read, or is not UTF-8: `whyUtf8` follows that then.
 */
export async function readText(file: string, whyUtf8 = ''): Promise<string> {
  const isInput = file === '-';
  const bytes = await (isInput ? buffer(process.stdin) : readFile(file)).catch((cause: Error) => {
    throw new UserError(`Cannot read ${isInput ? 'the standard input' : file}: ${cause.message}`, { cause });
  });
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new UserError(`${isInput ? 'The standard input' : file} is not UTF-8.${whyUtf8}`, { cause });
  }
}
