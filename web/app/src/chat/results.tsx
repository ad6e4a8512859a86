/** What the agents of a turn handed back: outputs, tables, charts, sources, errors, cost. */

import { useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { AgentResult, Citation, Json, Source, Table } from "../api/types.ts";
import { ChartView } from "../data/chart.tsx";
import { DataTable } from "../data/table.tsx";
import { JsonView } from "../parts/json-view.tsx";
import { referenced } from "../documents/place.ts";
import { useLoad } from "../parts/load.ts";
import { Markdown } from "../parts/markdown.tsx";
import { Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { attempt } from "../parts/notice.tsx";
import { duration, plural } from "../parts/time.tsx";

function problem(error: AgentResult["error"]): string | null {
  if (!error) return null;
  return typeof error === "string" ? error : `${error.type ? `${error.type}: ` : ""}${error.message}`;
}

/** Reports a share as people read it. */
const percent = (part: number) => `${Math.round(part * 100)} %`;

export function ResultCard({ thread, result }: { thread: string; result: AgentResult }) {
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
    <details class={`result ${error ? "bad" : ""}`}>
      <summary>
        <span class={error ? "mark bad" : "mark good"}>{error ? "✗" : "✓"}</span> <strong>{agentName(result.agent)}</strong> <span class="task">{readable(result.task)}</span>
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
      {(result.tools?.length ?? 0) > 0 && (
        <details>
          <summary>{plural(result.tools?.length ?? 0, "call")}</summary>
          {result.tools?.map((call, index) => (
            <div key={index}>
              <span class={call.is_error ? "mark bad" : "mark good"}>{call.is_error ? "✗" : "✓"}</span> <code>{call.tool}</code>
              <JsonView value={call.arguments} />
            </div>
          ))}
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

/** A table; the rest of a large one is read when it is wanted. */
function TableOf({ thread, table, name }: { thread: string; table: Table; name: string }) {
  const [whole, setWhole] = useState<Table | null>(null);
  const { artifact } = table;
  const read = async (key: string) => setWhole({ ...table, ...(JSON.parse((await threads.artifact(thread, key)).content) as Table) });
  return (
    <>
      <DataTable table={whole ?? table} name={name} />
      {artifact && !whole && <button type="button" onClick={() => void attempt(() => read(artifact))}>All {plural(table.row_count ?? table.rows.length, "row")}</button>}
    </>
  );
}

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

/** The charts and tables that a turn gave. */
export function Findings({ thread, results }: { thread: string; results: AgentResult[] }) {
  return (
    <>
      {results.filter((result) => result.chart || result.tabular).map((result) => (
        <div class="findings" key={result.id}>
          {result.chart && <ChartView chart={result.chart} title={result.task} />}
          {result.tabular && <TableOf thread={thread} table={result.tabular} name={agentName(result.agent)} />}
        </div>
      ))}
    </>
  );
}

/** The sources of a turn, one entry for each number; the one that a reader asked for is open. */
export function Citations({ citations, results, opened }: { citations: Citation[]; results: AgentResult[]; opened: number | null }) {
  if (citations.length === 0) return null;
  const numbers = [...new Set(citations.map((citation) => citation.number))].sort((a, b) => a - b);
  return (
    <ol class="citations" aria-label="Sources">
      {numbers.map((number) => {
        const all = citations.filter((citation) => citation.number === number);
        return (
          <li key={number} value={number} id={`cite-${number}`} class={opened === number ? "opened" : ""} tabIndex={-1}>
            <details open={opened === number}>
              <summary><strong>{agentName(all[0]?.agent ?? "")}</strong> <span class="hint">{readable(counted(all.map((citation) => agentName(citation.source))))}</span></summary>
              <Quotes results={results.filter((result) => result.agent === all[0]?.agent)} />
              {all.map((citation, index) => (
                <div key={index}>
                  <code>{readable(citation.source)}</code>
                  {citation.arguments !== null && citation.arguments !== undefined && <JsonView value={citation.arguments} />}
                </div>
              ))}
            </details>
          </li>
        );
      })}
    </ol>
  );
}

/** The places in documents that an agent quoted. */
function Quotes({ results }: { results: AgentResult[] }) {
  const sources = results.flatMap((result) => result.sources ?? []).filter((source) => referenced(source));
  return (
    <>
      {sources.map((source, index) => (
        <div key={index} class="quoted">
          <span class="hint">{readable(source.reference ?? "")}</span> <OpenSource source={source} />
          {source.quote && <blockquote>{readable(source.quote)}</blockquote>}
        </div>
      ))}
    </>
  );
}

/** Lists names, each once, with how often it stands there. */
function counted(names: string[]): string {
  const times = new Map<string, number>();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  return [...times].map(([name, count]) => (count > 1 ? `${name} × ${count}` : name)).join(", ");
}
