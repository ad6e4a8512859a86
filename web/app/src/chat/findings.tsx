/** What a turn found: a card for each chart and table, with the query that it comes from. */

import { useState } from "preact/hooks";
import { readExact } from "../api/exact.ts";
import { threads } from "../api/threads.ts";
import type { AgentResult, Table } from "../api/types.ts";
import { ChartView, saveChart } from "../data/chart.tsx";
import { DataTable } from "../data/table.tsx";
import { Menu } from "../parts/menu.tsx";
import { attempt } from "../parts/notice.tsx";
import { agentName, readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { laidOut, queriesOf } from "./cited.ts";

type Tab = "Chart" | "Table" | "Query";

export function Findings({ thread, results }: { thread: string; results: AgentResult[] }) {
  return <>{results.filter((result) => result.chart || result.tabular).map((result) => <Finding key={result.id} thread={thread} result={result} />)}</>;
}

/** Returns the query that led to a result: the one it quotes, or else the last that went well. */
function queryOf(result: AgentResult): string | undefined {
  const quoted = (result.sources ?? []).map((source) => ({ arguments: { quote: source.quote ?? "" } }));
  return queriesOf(quoted).at(-1) ?? queriesOf((result.tools ?? []).filter((call) => !call.is_error)).at(-1);
}

function Finding({ thread, result }: { thread: string; result: AgentResult }) {
  const { chart, tabular } = result;
  const query = queryOf(result);
  const tabs: Tab[] = [...(chart?.svg ? ["Chart" as const] : []), ...(tabular ? ["Table" as const] : []), ...(query ? ["Query" as const] : [])];
  const [tab, setTab] = useState<Tab>(tabs[0] ?? "Table");
  return (
    <section class="finding" aria-label={`Data of ${agentName(result.agent)}`}>
      <header class="finding-head">
        <span class="tabs" role="group" aria-label="Shown as">{tabs.map((one) => <button key={one} type="button" aria-pressed={tab === one} onClick={() => setTab(one)}>{one}</button>)}</span>
        {chart && (
          <Menu label="Save the chart" icon="download">
            <button type="button" onClick={() => saveChart(chart, "svg")}>SVG</button>
            {chart.vega_lite !== undefined && <button type="button" onClick={() => saveChart(chart, "vega")}>Vega-Lite</button>}
          </Menu>
        )}
      </header>
      {tab === "Chart" && chart && <ChartView chart={chart} title={result.task} />}
      {tab === "Table" && tabular && <TableOf thread={thread} table={tabular} name={agentName(result.agent)} />}
      {tab === "Query" && query && <pre tabIndex={0}><code>{readable(laidOut(query))}</code></pre>}
    </section>
  );
}

/** A table; the rest of a large one is read when it is wanted. */
function TableOf({ thread, table, name }: { thread: string; table: Table; name: string }) {
  const [whole, setWhole] = useState<Table | null>(null);
  const { artifact } = table;
  const read = async (key: string) => setWhole({ ...table, ...readExact<Table>((await threads.artifact(thread, key)).content) });
  return (
    <>
      <DataTable table={whole ?? table} name={name} />
      {artifact && !whole && <button type="button" onClick={() => void attempt(() => read(artifact))}>All {plural(table.row_count ?? table.rows.length, "row")}</button>}
    </>
  );
}
