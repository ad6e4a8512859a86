/** The palette: every view and thread by keyboard (Ctrl or ⌘ with K). */

import { useMemo, useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import { threadTitle } from "../chat/thread-list.tsx";
import { link } from "../router.ts";
import { Dialog } from "./dialog.tsx";
import { useLoad } from "./load.ts";

interface Props {
  views: { title: string; address: string }[];
  onClose: () => void;
}

export function Palette({ views, onClose }: Props) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useLoad(() => threads.search(), []);
  const found = useMemo(() => {
    const all = [...views, ...(list.data ?? []).map((thread) => ({ title: threadTitle(thread), address: link("chat", thread.thread_id) }))];
    const wanted = words.trim().toLowerCase();
    return all.filter((entry) => entry.title.toLowerCase().includes(wanted)).slice(0, 12);
  }, [words, list.data, views]);
  function key(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") open(found[chosen]?.address);
    else return;
    event.preventDefault();
  }
  function open(address: string | undefined) {
    if (address) location.hash = address;
    onClose();
  }
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input type="text" autofocus role="combobox" aria-expanded="true" aria-controls="palette-found" aria-activedescendant={`palette-${chosen}`} aria-label="View or thread" value={words} onInput={(event) => (setWords(event.currentTarget.value), setChosen(0))} onKeyDown={key} />
      <ul id="palette-found" role="listbox" aria-label="Found" class="palette">
        {found.map((entry, index) => (
          <li key={entry.address} id={`palette-${index}`} role="option" aria-selected={index === chosen} onClick={() => open(entry.address)}>{entry.title}</li>
        ))}
      </ul>
    </Dialog>
  );
}
