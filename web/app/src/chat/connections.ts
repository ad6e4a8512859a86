/**
 * Which tabs keep a connection open.
 *
 * Over HTTP/1.1 a browser has six connections for a server, whatever number of tabs share them. A few tabs hold one
 * and follow their run all the time; the others look at theirs in turn, one at a time, so that connections are left for
 * everything else.
 */

/** Tabs that follow a run all the time. */
const HELD = 3;

/** Does `work` with a connection of the tab's own where one is free, or else in turn with the other tabs that have none. */
export async function inTurn(work: (isHeld: boolean) => Promise<void>, signal: AbortSignal): Promise<void> {
  // Only pages of a secure origin, which loopback is, can know of each other.
  const { locks } = navigator as { locks?: LockManager };
  if (!locks) return work(true);
  for (let number = 0; number < HELD; number += 1) {
    const was = await locks.request(`perihelion-connection-${number}`, { ifAvailable: true }, async (lock) => {
      if (!lock) return false;
      await work(true);
      return true;
    });
    if (was) return;
  }
  await locks.request("perihelion-look", { signal }, () => work(false));
}
