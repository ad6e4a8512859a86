/** The trace of a run, by the module that saved traces have within themselves. */

import { useEffect, useRef } from "preact/hooks";
import { send } from "../api/http.ts";
import { ThreadHead } from "../chat/thread-head.tsx";
import { download } from "../data/export.ts";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Shown } from "../parts/states.tsx";
import { showTrace } from "../../../trace/page.js";
import { putQuery } from "../router.ts";
import { RunPicker } from "./run-picker.tsx";

/** The address of a run's trace; of the newest run's where no number is given. */
const address = (thread: string, run: string) => `v1/threads/${encodeURIComponent(thread)}/trace/page${Number(run) > 0 ? `?run=${Number(run)}` : ""}`;

const read = async (thread: string, run: string) => (await send(address(thread, run))).text();

export function TraceView({ thread, query }: { thread: string; query: URLSearchParams }) {
  const run = query.get("run") ?? "";
  const setRun = (chosen: string) => putQuery({ run: chosen });
  const page = useLoad(() => read(thread, run), [thread, run]);
  const save = async () => download(`trace-${thread}.html`, [await read(thread, run)], "text/html");
  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Trace" />
      <div class="filters trace-filters">
        <RunPicker thread={thread} name="Run" all="Newest" value={run} onChange={setRun} />
        <button type="button" onClick={page.reload}><Icon name="retry" /> Refresh</button>
        <button type="button" onClick={() => void attempt(save)}><Icon name="download" /> Download trace</button>
      </div>
      <Shown of={page} what="the trace">{(html) => <Waterfall key={run} html={html} />}</Shown>
    </div>
  );
}

/** Shows what stands in a trace's page, which is read and never run. */
function Waterfall({ html }: { html: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const closed = new AbortController();
    // Nothing in the data can end the element that it stands in.
    const data: unknown = JSON.parse(/id="trace-data">(.*?)<\/script>/s.exec(html)?.[1] ?? "{}");
    const parts = [...html.matchAll(/class="spans">(.*?)<\/script>/gs)].map(([, part = "[]"]) => part);
    if (box.current) void showTrace(box.current, data, parts, closed.signal);
    return () => closed.abort();
  }, [html]);
  return <div ref={box} />;
}
