/** The trace of a thread's newest run: the same page that `perihelion trace --open` writes. */

import { send } from "../api/http.ts";
import { key } from "../api/who.ts";
import { download } from "../data/table.tsx";
import { attempt } from "../parts/notice.tsx";
import { InspectorHead } from "./head.tsx";

const address = (thread: string) => `v1/threads/${encodeURIComponent(thread)}/trace/page`;

async function save(thread: string) {
  download(`trace-${thread}.html`, await (await send(address(thread))).text(), "text/html");
}

export function TraceView({ thread }: { thread: string }) {
  return (
    <div class="trace">
      <InspectorHead thread={thread} title="Trace" />
      {key() ? (
        <p class="buttons">
          <button type="button" onClick={() => void attempt(() => save(thread))}>Save the trace as a page</button>
          <span class="hint">A frame cannot carry the API key, so it is not shown in place.</span>
        </p>
      ) : (
        <iframe title="Trace as a waterfall" src={address(thread)} />
      )}
    </div>
  );
}
