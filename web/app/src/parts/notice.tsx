/** Short notices at the top right: what was done, what failed. An open dialog shows them within itself, so that it never hides them. */

import { signal } from "@preact/signals";
import { Icon } from "./icon.tsx";

interface Notice {
  id: number;
  text: string;
  bad: boolean;
}

const notices = signal<Notice[]>([]);
let next = 1;

/** How many dialogs are open, one above another. */
export const dialogs = signal(0);

function add(text: string, bad: boolean) {
  const id = next;
  next += 1;
  notices.value = [...notices.value.slice(-4), { id, text, bad }];
  setTimeout(() => dismiss(id), bad ? 12_000 : 5_000);
}

function dismiss(id: number) {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export const say = (text: string) => add(text, false);
export const complain = (error: unknown) => add(error instanceof Error ? error.message : String(error), true);

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
          <button type="button" class="square" aria-label="Dismiss" onClick={() => dismiss(notice.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  );
}
