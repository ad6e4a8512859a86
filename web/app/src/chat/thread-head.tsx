/** The head that all views of one thread share: its title, how it stands, where else to look, what can be done with it. */

import { useEffect, useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { ComponentChildren } from "preact";
import { saveDataSet, saveThread } from "../data/export.ts";
import { Icon, type IconName } from "../parts/icon.tsx";
import { Menu } from "../parts/menu.tsx";
import { attempt } from "../parts/notice.tsx";
import { link } from "../router.ts";
import { threadsChanged } from "./changed.ts";
import { recent, remove, rename, threadTitle } from "./titles.ts";

/** The views of one thread; those after the fourth are in the menu. */
export const PLACES = [
  ["chat", "Chat"],
  ["inspect", "Steps"],
  ["trace", "Trace"],
  ["graph", "Graph"],
  ["replay", "Replay"],
  ["compare", "Compare"],
  ["again", "Try a prompt"],
] as const;

const TABS = 4;

const ICONS: { [view: string]: IconName } = { replay: "retry", again: "pencil" };

/** Returns the title of a thread: from the lists that are here, or else from the server. */
function useTitle(thread: string): string {
  const known = recent.value.find((one) => one.thread_id === thread);
  const [read, setRead] = useState("");
  const isKnown = known !== undefined;
  useEffect(() => {
    if (isKnown) return;
    threads.get(thread).then(({ metadata }) => setRead(String(metadata?.title ?? "")), () => {});
  }, [thread, isKnown, threadsChanged.value]);
  return known ? threadTitle(known) : read || `Thread ${thread.slice(0, 8)}`;
}

export function ThreadHead({ thread, here, children }: { thread: string; here: string; children?: ComponentChildren }) {
  const title = useTitle(thread);
  return (
    <header class="thread-head">
      <h1><button type="button" class="plain title" title="Rename" onClick={() => void rename({ thread_id: thread }, title)}><span class="ellipsis">{title}</span></button>{here !== "Chat" && <span class="hidden">: {here}</span>}</h1>
      <nav class="tabs" aria-label="The thread">
        {PLACES.filter(([, name], index) => index < TABS || name === here).map(([view, name]) => <a key={view} href={link(view, thread)} aria-current={name === here ? "page" : undefined}>{name}</a>)}
      </nav>
      <span class="thread-tools">
        {children}
        <Menu label="More actions">
          {PLACES.slice(TABS).map(([view, name]) => <a key={view} href={link(view, thread)}><Icon name={ICONS[view] ?? "branch"} /> {name}</a>)}
          <button type="button" onClick={() => void attempt(() => saveThread(thread))}><Icon name="download" /> Export</button>
          <button type="button" onClick={() => void attempt(() => saveDataSet(thread))}><Icon name="download" /> Data set</button>
          <button type="button" onClick={() => void rename({ thread_id: thread }, title)}><Icon name="pencil" /> Rename</button>
          <button type="button" class="danger" onClick={() => void remove({ thread_id: thread })}><Icon name="trash" /> Delete</button>
        </Menu>
      </span>
    </header>
  );
}
