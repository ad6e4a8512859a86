/** The palette: every view and thread, and what can be done from anywhere, by keyboard (Ctrl or ⌘ with K). */

import { useMemo, useState } from "preact/hooks";
import { threads } from "./api/threads.ts";
import { threadTitle } from "./chat/titles.ts";
import { Dialog } from "./parts/dialog.tsx";
import { useLater } from "./parts/later.ts";
import { useLoad } from "./parts/load.ts";
import { nextTheme } from "./parts/theme.ts";
import { Icon, type IconName } from "./parts/icon.tsx";
import { link, route } from "./router.ts";
import { ICONS, OF_ONE, PLACES } from "./views.ts";

/** What can be chosen: an address, or something to do. */
interface Entry {
  id: string;
  title: string;
  icon: IconName;
  open: () => void;
}

const at = (title: string, address: string, icon: IconName): Entry => ({ id: address, title, icon, open: () => void (location.hash = address) });

/** The other views of the thread that is open. */
function ofThread(): Entry[] {
  const [view, id] = route.value.path;
  if (!id || !OF_ONE.some(([place]) => place === view)) return [];
  return OF_ONE.filter(([place]) => place !== view).map(([place, title]) => at(`This thread: ${title}`, link(place, id), ICONS[place]));
}

const DEEDS: Entry[] = [
  { id: "new", title: "New thread", icon: "plus", open: () => void (location.hash = link("chat")) },
  { id: "theme", title: "Switch between light and dark", icon: "moon", open: nextTheme },
];

export function Palette({ onClose }: { onClose: () => void }) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const wanted = words.trim().toLowerCase();
  const title = useLater(wanted);
  const list = useLoad(() => threads.search({ title, evaluated: title !== "" }), [title], { keep: true });
  const found = useMemo(() => {
    const known = (list.data ?? []).map((thread) => at(threadTitle(thread), link("chat", thread.thread_id), "message"));
    const all = [...PLACES.map((view) => at(view.title, view.address, view.icon)), ...ofThread(), ...DEEDS, ...known];
    return all.filter((entry) => entry.title.toLowerCase().includes(wanted)).slice(0, 16);
  }, [wanted, list.data]);
  function key(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") choose(found[chosen]);
    else return;
    event.preventDefault();
  }
  function choose(entry: Entry | undefined) {
    entry?.open();
    onClose();
  }
  return (
    <Dialog title="Search" class="search-dialog" onClose={onClose}>
      <input type="text" autofocus role="combobox" aria-expanded="true" aria-controls="palette-found" aria-activedescendant={`palette-${chosen}`} aria-label="View or thread" placeholder="View, thread or action" value={words} onInput={(event) => (setWords(event.currentTarget.value), setChosen(0))} onKeyDown={key} />
      <ul id="palette-found" role="listbox" aria-label="Found" class="palette">
        {found.map((entry, index) => (
          <li key={entry.id} id={`palette-${index}`} role="option" aria-selected={index === chosen} onClick={() => choose(entry)}><Icon name={entry.icon} /> <span class="ellipsis">{entry.title}</span></li>
        ))}
      </ul>
    </Dialog>
  );
}
