/** The head that all views of one thread share: its title, how it stands, where else to look, what can be done with it. */

import { useEffect, useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { ThreadHead as Head, ThreadStatus } from "../api/types.ts";
import type { ComponentChildren } from "preact";
import { saveDataSet, saveThread } from "../data/export.ts";
import { Icon } from "../parts/icon.tsx";
import { Menu } from "../parts/menu.tsx";
import { attempt } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { link } from "../router.ts";
import { ICONS, OF_ONE } from "../views.ts";
import { threadsChanged } from "./changed.ts";
import { STATUS, nameOfThread, recent, remove, rename, threadTitle } from "./titles.ts";

/** Views that have a tab. */
const TABS = 4;

/** Returns a thread as lists show it: from the lists that are here, or else from the server. */
function useHead(thread: string): Head | undefined {
  const known = recent.value.find((one) => one.thread_id === thread);
  const [read, setRead] = useState<Head>();
  const isKnown = known !== undefined;
  useEffect(() => {
    if (!isKnown) threads.head(thread).then(setRead, () => {});
  }, [thread, isKnown, threadsChanged.value]);
  return known ?? read;
}

interface Props {
  thread: string;
  here: string;
  /** How it stands, where the view knows; else as the lists know it. */
  status?: ThreadStatus | undefined;
  children?: ComponentChildren;
}

export function ThreadHead({ thread, here, status, children }: Props) {
  const head = useHead(thread);
  const title = head ? threadTitle(head) : nameOfThread(thread);
  const now = status ?? head?.status;
  return (
    <header class="thread-head">
      <h1><button type="button" class="plain title" title="Rename" onClick={() => void rename({ thread_id: thread }, title)}><span class="ellipsis">{title}</span></button>{here !== "Chat" && <span class="hidden">: {here}</span>}</h1>
      {now && <span class="thread-status"><Status of={now} words={STATUS[now]} /> <span class="hint small" aria-hidden="true">{STATUS[now]}</span></span>}
      <nav class="tabs" aria-label="The thread">
        {OF_ONE.filter(([, name], index) => index < TABS || name === here).map(([view, name]) => <a key={view} href={link(view, thread)} aria-current={name === here ? "page" : undefined}>{name}</a>)}
      </nav>
      <span class="thread-tools">
        {children}
        <Menu label="More actions">
          {OF_ONE.slice(0, TABS).map(([view, name]) => <a key={view} class="phone" href={link(view, thread)} aria-current={name === here ? "page" : undefined}><Icon name={ICONS[view]} /> {name}</a>)}
          {OF_ONE.slice(TABS).map(([view, name]) => <a key={view} href={link(view, thread)}><Icon name={ICONS[view]} /> {name}</a>)}
          <button type="button" onClick={() => void attempt(() => saveThread(thread))}><Icon name="download" /> Export</button>
          <button type="button" onClick={() => void attempt(() => saveDataSet(thread))}><Icon name="download" /> Data set</button>
          <button type="button" onClick={() => void rename({ thread_id: thread }, title)}><Icon name="pencil" /> Rename</button>
          <button type="button" class="danger" onClick={() => void remove({ thread_id: thread })}><Icon name="trash" /> Delete</button>
        </Menu>
      </span>
    </header>
  );
}
