/** Deletions that can be undone for a moment: what they delete is hidden at once, and deleted later. */

import { signal } from "@preact/signals";
import { send } from "../api/http.ts";
import { undoable } from "./notice.tsx";

/** Addresses of what was deleted here, which lists hide. */
export const gone = signal<ReadonlySet<string>>(new Set());

/** Those that the server has deleted, so that only lists that were read before still have them. */
const settled = new Set<string>();

/** Deletes what an address stands for unless that is undone; tells whether it was deleted. */
export async function remove(address: string): Promise<boolean> {
  gone.value = new Set(gone.value).add(address);
  const isDone = await undoable("Deleted.", () => send(address, { method: "DELETE", keepalive: true }));
  if (isDone) settled.add(address);
  else show([address]);
  return isDone;
}

function show(addresses: string[]) {
  gone.value = new Set([...gone.value].filter((one) => !addresses.includes(one)));
}

/** Reads a list, in which nothing that was deleted before has to be hidden. */
export async function readAfter<T>(read: () => Promise<T>): Promise<T> {
  const done = [...settled];
  const found = await read();
  done.forEach((one) => settled.delete(one));
  show(done);
  return found;
}
