/** The graphs that the program brought along, and one of them: its drawing, and a form that starts a run. */

import { graphs, type Assistant } from "../api/graphs.ts";
import type { Json } from "../api/types.ts";
import { begin, type Sending } from "../chat/conversation.ts";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { go, link } from "../router.ts";
import { GraphDrawing } from "./drawing.tsx";
import { StartForm, titleOf } from "./start-form.tsx";

export function GraphsView({ graph }: { graph: string | undefined }) {
  return graph === undefined ? <GraphList /> : <GraphStart key={graph} graph={graph} />;
}

function GraphList() {
  const list = useLoad(graphs.own, []);
  return (
    <section class="view narrow" aria-label="Graphs">
      <header class="view-head"><h1>Graphs</h1></header>
      <Shown of={list} what="graphs">
        {(all) => (all.length === 0 ? <Empty title="No custom graphs"><p>A program that registers graphs serves them here, next to agents and teams.</p><p class="buttons"><a class="button primary" href={link("agents")}>Show agents</a></p></Empty> : <GraphRows all={all} />)}
      </Shown>
    </section>
  );
}

/** Graphs with what they do, each with a link to where it is started. */
export function GraphRows({ all }: { all: Assistant[] }) {
  return (
    <ul class="plain-list">
      {all.map((one) => (
        <li key={one.graph_id}>
          <a href={link("graphs", one.graph_id)}><strong>{readable(one.graph_id)}</strong></a>
          {one.description && <p class="hint">{readable(one.description)}</p>}
        </li>
      ))}
    </ul>
  );
}

function GraphStart({ graph }: { graph: string }) {
  const about = useLoad(async () => {
    const [own, drawing, schemas] = await Promise.all([graphs.own(), graphs.drawing(graph), graphs.schemas(graph)]);
    return { description: own.find((one) => one.graph_id === graph)?.description, drawing, schemas };
  }, [graph]);
  const start = async (input: Json, sending: Sending) => go("chat", await begin(input, sending, { graph, title: titleOf(graph, input) }));
  return (
    <section class="view graph-start" aria-label={`Graph ${graph}`}>
      <header class="view-head"><h1>{readable(graph)}</h1></header>
      <Shown of={about} what="the graph">
        {({ description, drawing, schemas }) => (
          <>
            {description && <p class="hint">{readable(description)}</p>}
            <div class="graph-columns">
              <section class="card" aria-label="Start a run"><StartForm schema={schemas.input_schema} onStart={start} place={`graph-${graph}`} /></section>
              <GraphDrawing name={graph} drawing={drawing} standings={new Map()} />
            </div>
          </>
        )}
      </Shown>
    </section>
  );
}
