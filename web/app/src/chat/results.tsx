/** What the agents of a turn handed back: outputs, sources, errors, tokens. */

import { useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { AgentResult, Json, Source } from "../api/types.ts";
import { JsonView } from "../parts/json-view.tsx";
import { referenced } from "../documents/place.ts";
import { useLoad } from "../parts/load.ts";
import { Markdown } from "../parts/markdown.tsx";
import { Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { Status } from "../parts/status.tsx";
import { duration, plural } from "../parts/time.tsx";
import { problem } from "./checklist.ts";

/** Reports a share as people read it. */
const percent = (part: number) => `${Math.round(part * 100)} %`;

export function ResultCard({ thread, result, isOpen }: { thread: string; result: AgentResult; isOpen: boolean }) {
  const error = problem(result.error);
  const tokens = (result.usage?.input_tokens ?? 0) + (result.usage?.output_tokens ?? 0);
  const panels = result.sources?.map((source) => source.reference).find((key) => key?.endsWith(PANELS));
  const facts = [
    result.reflection?.toLowerCase(),
    result.confidence !== null && result.confidence !== undefined && `confidence ${percent(result.confidence)}`,
    result.latency_ms && duration(result.latency_ms),
    tokens > 0 && plural(tokens, "token"),
    (result.attempts ?? 1) > 1 && plural(result.attempts ?? 1, "attempt"),
  ].filter(Boolean);
  return (
    <details class={`result ${error ? "bad" : ""}`} open={isOpen}>
      <summary>
        <Status of={error ? "failed" : "done"} words={error ? "failed" : "done"} /> <strong>{agentName(result.agent)}</strong> <span class="task">{readable(result.task)}</span>
        <span class="facts">{facts.join(" · ")}</span>
      </summary>
      {error && <p class="error-text">{readable(error)}</p>}
      {result.output && <Markdown text={result.output} />}
      {panels && <Panels thread={thread} artifact={panels} />}
      {(result.sources?.length ?? 0) > 0 && (
        <details>
          <summary>{plural(result.sources?.length ?? 0, "source")}</summary>
          <ol>{result.sources?.map((source, index) => <li key={index}>{readable([source.source && agentName(source.source), source.title ?? source.reference].filter(Boolean).join(": "))}<OpenSource source={source} />{source.quote && <blockquote>{readable(source.quote)}</blockquote>}</li>)}</ol>
        </details>
      )}
    </details>
  );
}

/** A way to the place in a document that a source names. */
function OpenSource({ source }: { source: Source }) {
  const address = referenced(source);
  return address ? <> <a href={address}>Open at the quote</a></> : null;
}

/** How the name ends under which an analyst keeps what led to its answer. */
const PANELS = "/analysis.json";

/** What led to an analyst's answer, stage by stage; read when it is opened. */
function Panels({ thread, artifact }: { thread: string; artifact: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Source query</summary>
      {open && <PanelsRead thread={thread} artifact={artifact} />}
    </details>
  );
}

function PanelsRead({ thread, artifact }: { thread: string; artifact: string }) {
  const read = useLoad(async () => JSON.parse((await threads.artifact(thread, artifact)).content) as { [panel: string]: Json }, [artifact]);
  return (
    <Shown of={read} what="the panels">
      {(panels) => Object.entries(panels).filter(([, panel]) => panel !== null).map(([name, panel]) => (
        <details key={name}>
          <summary>{readable(name.replaceAll("_", " "))}</summary>
          <JsonView value={panel} />
        </details>
      ))}
    </Shown>
  );
}
