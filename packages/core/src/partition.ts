/** Calculates the partition of a subscription's keys; the names of keys are left to packages/store. */
import { crc32 } from 'node:zlib';

/** The stable 32-bit hash behind partitions. Changing it would orphan every stored key. */
export function partitionHash(id: string): number {
  return crc32(id);
}

/** The partition, 0 to `partitions` - 1, of a subscription or of an event record, by its id. */
export function partitionOf(id: string, partitions: number): number {
  return partitions === 1 ? 0 : partitionHash(id) % partitions;
}
