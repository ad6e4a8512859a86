/** The last ten threads by day, in the sidebar. */

import { threads } from "../api/threads.ts";
import type { ThreadHead } from "../api/types.ts";
import { useLoad } from "../parts/load.ts";
import { Time, dayText } from "../parts/time.tsx";
import { link, route } from "../router.ts";
import { threadsChanged } from "./changed.ts";
import { STATUS, isThere, recent, threadTitle } from "./titles.ts";

/** Threads that the sidebar has room for. */
const SHOWN = 10;

const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long" });

/** Names the day of a moment as people do. */
export function dayName(text: string): string {
  const day = new Date(text);
  const since = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(text).setHours(0, 0, 0, 0)) / 86_400_000);
  if (since <= 0) return "Today";
  if (since === 1) return "Yesterday";
  return since < 7 ? weekday.format(day) : dayText(day);
}

/** Groups threads by the day of their last change, in their order. */
export function byDay(all: ThreadHead[]): [string, ThreadHead[]][] {
  const days = new Map<string, ThreadHead[]>();
  for (const thread of all) {
    const day = dayName(thread.updated_at);
    days.set(day, [...(days.get(day) ?? []), thread]);
  }
  return [...days];
}

export function RecentThreads() {
  useLoad(
    async () => {
      recent.value = await threads.search();
      return null;
    },
    [threadsChanged.value],
    { every: 10_000, keep: true },
  );
  const here = route.value.path[1];
  return (
    <ul class="recent" aria-label="Recent threads">
      {byDay(recent.value.filter(isThere).slice(0, SHOWN)).map(([day, all]) => [
        <li key={day} class="day">{day}</li>,
        ...all.map((thread) => (
          <li key={thread.thread_id}>
            <a href={link("chat", thread.thread_id)} title={threadTitle(thread)} aria-current={thread.thread_id === here ? "page" : undefined}>
              <span class="recent-title">{threadTitle(thread)}</span>
              <span class="recent-about">{thread.status !== "idle" && <><span class={`dot ${thread.status}`} aria-hidden="true" /> {STATUS[thread.status]} · </>}<Time of={thread.updated_at} /></span>
            </a>
          </li>
        )),
      ])}
    </ul>
  );
}
