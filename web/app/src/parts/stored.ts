/** Values that this browser keeps, by name. */

import { useState } from "preact/hooks";

/** Returns what is kept under a name, if something is. */
export function stored<Kept>(name: string): Kept | undefined {
  try {
    return (JSON.parse(localStorage.getItem(name) ?? "null") ?? undefined) as Kept | undefined;
  } catch {
    return undefined;
  }
}

/** Keeps something under a name, or nothing. */
export function store(name: string, value: unknown) {
  try {
    if (value === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing has the value until the tab is closed.
  }
}

/** A state that this browser keeps under a name. */
export function useStored<Kept>(name: string, first: Kept): [Kept, (value: Kept) => void] {
  const [value, setValue] = useState<Kept>(() => stored<Kept>(name) ?? first);
  return [value, (next) => (store(name, next), setValue(next))];
}
