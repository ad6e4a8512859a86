/**
 * Which tabs keep a connection open.
 *
 * Over HTTP/1.1 a browser has six connections for a server, whatever number of tabs share them. A few tabs have a seat
 * and follow their run all the time; the others look at theirs in turn, one at a time, so that connections are left for
 * everything else.
 */

/** Tabs that follow a run all the time. */
const SEATS = 3;

/** Does `work` with a seat where one is free, or else in turn with the other tabs that have none. */
export async function inTurn(work: (seated: boolean) => Promise<void>, signal: AbortSignal): Promise<void> {
  // Only pages of a secure origin, which loopback is, can know of each other.
  const { locks } = navigator as { locks?: LockManager };
  if (!locks) return work(true);
  for (let seat = 0; seat < SEATS; seat += 1) {
    const sat = await locks.request(`perihelion-seat-${seat}`, { ifAvailable: true }, async (lock) => {
      if (!lock) return false;
      await work(true);
      return true;
    });
    if (sat) return;
  }
  await locks.request("perihelion-look", { signal }, () => work(false));
}
