/** Short notices at the top right: what was done, what failed. An open dialog shows them within itself, so that it never hides them. */

import { signal } from "@preact/signals";
import { Icon } from "./icon.tsx";

interface Notice {
  id: number;
  text: string;
  bad: boolean;
  /** Whether it offers to undo what it says. */
  undo: boolean;
}

const notices = signal<Notice[]>([]);
let next = 1;

/** How many dialogs are open, one above another. */
export const dialogs = signal(0);

/** What happens at the end of notices that offer to undo: nothing where that was wanted, or else what they say. */
const ends = new Map<number, (isUndone: boolean) => void>();

function add(text: string, bad: boolean, undo = false): number {
  const id = next;
  next += 1;
  notices.value = [...notices.value.slice(-4), { id, text, bad, undo }];
  setTimeout(() => dismiss(id), undo ? 6_000 : bad ? 12_000 : 5_000);
  return id;
}

function dismiss(id: number, isUndone = false) {
  notices.value = notices.value.filter((notice) => notice.id !== id);
  const end = ends.get(id);
  ends.delete(id);
  end?.(isUndone);
}

export const say = (text: string) => void add(text, false);
export const complain = (error: unknown) => void add(error instanceof Error ? error.message : String(error), true);

// Once the page is closed, nothing can be undone.
addEventListener("pagehide", () => [...ends.keys()].forEach((id) => dismiss(id)));

/** Says what was done, and does it once it can no longer be undone; tells whether it was done. */
export function undoable(text: string, work: () => Promise<unknown>): Promise<boolean> {
  const id = add(text, false, true);
  return new Promise((settle) => ends.set(id, (isUndone) => settle(isUndone ? false : attempt(work))));
}

/** Does something and shows what went wrong; tells whether it went well. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done) say(done);
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

/** The notices, in the page or in the dialog with this number. */
export function Notices({ depth = 0 }: { depth?: number }) {
  if (depth !== dialogs.value) return null;
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((notice) => (
        <div key={notice.id} class={notice.bad ? "notice bad" : "notice"}>
          <span>{notice.text}</span>
          {notice.undo && <button type="button" class="link" onClick={() => dismiss(notice.id, true)}>Undo</button>}
          <button type="button" class="square" aria-label="Dismiss" onClick={() => dismiss(notice.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  );
}
