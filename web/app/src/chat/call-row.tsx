/** A call on one line; opened, its arguments and its result. */

import { useState } from "preact/hooks";
import { titleOfTool } from "../data/tool-titles.ts";
import { Status } from "../parts/status.tsx";
import { readable } from "../parts/text.ts";
import { duration } from "../parts/time.tsx";
import { Values } from "../parts/values.tsx";
import { mainArgument, resultOf, resultWords, toolName, type Call } from "./calls.ts";

const WORDS = { working: "running", done: "done", failed: "failed", waiting: "waiting for you" };

export function CallRow({ call }: { call: Call }) {
  const [open, setOpen] = useState(false);
  const title = titleOfTool(call.tool);
  const gave = resultWords(call.result);
  return (
    <details class="call" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Status of={call.state} words={WORDS[call.state]} />
        {title ? <span class="call-title" title={call.tool}>{readable(title)}</span> : <code title={call.tool}>{readable(toolName(call.tool))}</code>}
        <span class="ellipsis hint">{readable(mainArgument(call.args))}</span>
        <span class="call-facts">{[call.ms !== undefined && duration(call.ms), gave].filter(Boolean).join(" · ")}</span>
      </summary>
      {open && (
        <>
          {title && <p class="hint small"><code>{readable(call.tool)}</code></p>}
          <Values title="Arguments" value={call.args} />
          {call.result !== undefined && call.result !== null && <Values title="Result" value={resultOf(call.result)} />}
        </>
      )}
    </details>
  );
}
