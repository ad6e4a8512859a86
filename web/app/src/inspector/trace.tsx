/** The trace of a thread's newest run: the same page that `perihelion trace --open` writes. */

import { link } from "../router.ts";

export function TraceView({ thread }: { thread: string }) {
  return (
    <div class="trace">
      <header class="view-head">
        <h1>Trace</h1>
        <a class="button" href={link("chat", thread)}>Conversation</a>
        <a class="button" href={link("inspect", thread)}>Steps</a>
      </header>
      <iframe title="Trace as a waterfall" src={`v1/threads/${encodeURIComponent(thread)}/trace/page`} />
    </div>
  );
}
