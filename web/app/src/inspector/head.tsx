/** The head that all views of one thread share: where else to look. */

import { link } from "../router.ts";

/** The views of one thread. */
export const PLACES = [
  ["chat", "Conversation"],
  ["inspect", "Steps"],
  ["trace", "Trace"],
  ["replay", "Replay"],
  ["compare", "Compare"],
] as const;

export function InspectorHead({ thread, title }: { thread: string; title: string }) {
  return (
    <header class="view-head">
      <h1>{title}</h1>
      <ThreadPlaces thread={thread} here={title} />
    </header>
  );
}

/** The ways to the other views of a thread. */
export function ThreadPlaces({ thread, here }: { thread: string; here: string }) {
  return (
    <nav class="tabs" aria-label="The thread">
      {PLACES.map(([view, name]) => <a key={view} href={link(view, thread)} aria-current={name === here ? "page" : undefined}>{name}</a>)}
    </nav>
  );
}
