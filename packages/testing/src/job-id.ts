/** The ids of jobs. Posthorn makes them in Lua alone (lua/lib/add-job.lua of packages/store). */

/** Returns the id that core's `readJobId` reads. */
export function jobIdOf({ deliveryId, generation }: { deliveryId: string; generation: number }): string {
  return generation === 0 ? deliveryId : `${deliveryId}.${generation}`;
}
