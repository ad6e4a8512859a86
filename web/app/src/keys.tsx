/** Keys that work in every view, and their list. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog } from "./parts/dialog.tsx";
import { dialogs } from "./parts/notice.tsx";
import { store, stored } from "./parts/stored.ts";
import { go } from "./router.ts";

/** Whether single keys do something: speech input and slips of the hand press them, too. */
const NAME = "perihelion-single-keys";
export const singleKeys = signal(stored<boolean>(NAME) ?? true);

export function KeysSetting() {
  const change = (on: boolean) => (store(NAME, on), (singleKeys.value = on));
  return <label class="choice"><input type="checkbox" checked={singleKeys.value} onChange={(event) => change(event.currentTarget.checked)} /> Single-key shortcuts, such as C to ask and A to approve</label>;
}

/** Views that a second key after G opens. */
const AFTER_G: { [key: string]: string } = { i: "inbox", t: "threads", r: "runs", a: "agents", h: "health", u: "usage" };

const isTyping = (target: EventTarget | null) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

export function useKeys(open: (what: "palette" | "keys") => void) {
  useEffect(() => {
    let isAfterG = false;
    const key = (event: KeyboardEvent) => {
      // However late it comes: a slow second key must not approve a call instead.
      const isSecond = isAfterG;
      isAfterG = false;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return open("palette");
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || dialogs.value > 0 || !singleKeys.value) return;
      isAfterG = event.key === "g" && !isSecond;
      const wanted = isSecond && AFTER_G[event.key];
      // A view's own keys, such as A and D in the inbox, must not see the second key.
      if (isSecond) event.stopImmediatePropagation();
      if (wanted) go(wanted);
      else if (isSecond) return;
      else if (event.key === "c") go("chat");
      else if (event.key === "?") open("keys");
      else if (event.key === "/") document.querySelector<HTMLElement>("main input[type=search]")?.focus();
      else return;
      event.preventDefault();
    };
    // Before the listeners of views.
    addEventListener("keydown", key, true);
    return () => removeEventListener("keydown", key, true);
  }, []);
}

/** Keys with what they do, and whether each is one alone. */
const LIST: [string, string, "single"?][] = [
  ["Ctrl K", "Search views, threads and actions"],
  ["C", "Ask a question", "single"],
  ["G then I, T, R, A, H, U", "Go to Inbox, Threads, Runs, Agents, Health or Usage", "single"],
  ["/", "Filter the list", "single"],
  ["J, K", "Next or previous request in the inbox; with Shift, select it", "single"],
  ["X", "Select the request, or not", "single"],
  ["A, D", "Approve or deny the open request", "single"],
  ["Enter", "Send the question"],
  ["Shift Enter", "Start a new line"],
  ["Escape", "Close"],
];

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">{LIST.filter(([, , single]) => singleKeys.value || !single).map(([keys, meaning]) => [<dt key={keys}>{keys.split(/(, | then | )/).map((part, at) => (at % 2 ? <span key={at} class="hint small">{part}</span> : <kbd key={at}>{part}</kbd>))}</dt>, <dd key={meaning}>{meaning}</dd>])}</dl>
      <KeysSetting />
    </Dialog>
  );
}
