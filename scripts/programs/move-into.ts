/** Moves a finished folder into its place. */
import { renameSync } from 'node:fs';

/** Moves a folder, unless another process was first. The caller removes what it could not move. */
export function moveInto(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
