/** Reads something of a thread, and again once the thread changed. */

import { useRef } from "preact/hooks";
import { threads } from "../api/threads.ts";
import { useLoad, type Loaded } from "../parts/load.ts";

/** Milliseconds between looks whether it changed. */
const EVERY = 3_000;

/** Loads by `read`, which is given what was read before; looking whether the thread changed costs little. */
export function useThread<T>(thread: string, read: (before: T | undefined) => Promise<T>): Loaded<T> {
  const last = useRef<{ of: string; value: T } | null>(null);
  const loaded = useLoad(
    async () => {
      const head = await threads.status(thread);
      const of = `${thread} ${head?.updated_at} ${head?.status}`;
      if (head && last.current?.of === of) return last.current.value;
      const before = last.current?.of.startsWith(thread) ? last.current.value : undefined;
      const value = await read(before);
      last.current = { of, value };
      return value;
    },
    [thread],
    { every: EVERY, keep: true },
  );
  const set = (value: T) => {
    if (last.current) last.current.value = value;
    loaded.set(value);
  };
  return { ...loaded, set };
}
