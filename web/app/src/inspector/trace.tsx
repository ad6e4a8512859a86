/** The trace of a run: the same page that `perihelion trace --open` writes. */

import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../api/http.ts";
import { key } from "../api/who.ts";
import { download } from "../data/export.ts";
import { useLater } from "../parts/later.ts";
import { attempt } from "../parts/notice.tsx";
import { theme } from "../parts/theme.ts";
import { InspectorHead } from "./head.tsx";

/** The address of a run's trace; of the newest run's where no number is given. */
const address = (thread: string, run: string) => `v1/threads/${encodeURIComponent(thread)}/trace/page${Number(run) > 0 ? `?run=${Number(run)}` : ""}`;

async function save(thread: string, run: string) {
  download(`trace-${thread}.html`, [await (await send(address(thread, run))).text()], "text/html");
}

export function TraceView({ thread }: { thread: string }) {
  const [written, setRun] = useState("");
  const run = useLater(written);
  return (
    <div class="trace">
      <InspectorHead thread={thread} title="Trace" />
      <p class="buttons">
        <label class="inline">Run <input type="number" min="1" placeholder="newest" value={written} onInput={(event) => setRun(event.currentTarget.value)} /></label>
        <button type="button" onClick={() => void attempt(() => save(thread, run))}>Save the trace as a page</button>
        {key() && <span class="hint">A frame cannot send the API key. Save the trace to view it.</span>}
      </p>
      {!key() && <Waterfall address={address(thread, run)} />}
    </div>
  );
}

function Waterfall({ address }: { address: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const chosen = theme.value;
  // The trace has a page of its own, which follows the system where nothing else is said.
  const dress = () => {
    const root = frame.current?.contentDocument?.documentElement;
    if (root) root.className = chosen === "system" ? "" : chosen;
  };
  useEffect(dress, [chosen]);
  return <iframe ref={frame} title="Trace waterfall" src={address} onLoad={dress} />;
}
