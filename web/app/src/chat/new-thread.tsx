/** Where a thread begins: the question, examples, and what is to be set up first. */

import { useDemo } from "../demo.ts";
import { graphs } from "../api/graphs.ts";
import { agents } from "../data/agents.ts";
import { GraphRows } from "../graphs/graphs-view.tsx";
import { useLoad } from "../parts/load.ts";
import { go } from "../router.ts";
import { Composer } from "./composer.tsx";
import { begin, type Request, type Sending } from "./conversation.ts";
import { DemoQuestions, UseYourModel } from "./demo.tsx";
import { FirstSteps } from "./first-steps.tsx";

export function NewThread() {
  const known = useLoad(agents.list, [], { every: 15_000 });
  const own = useLoad(graphs.own, []);
  const isDemo = useDemo();
  const send = async (request: Request, sending: Sending) => go("chat", await begin(request, sending));
  const names = known.data?.agents.map((agent) => agent.name) ?? [];
  return (
    <section class="conversation new" aria-label="New thread">
      <h1>What do you want to know?</h1>
      <Composer agents={names} busy={false} onSend={send} autoFocus />
      {isDemo && (
        <section class="examples" aria-label="Examples">
          <p class="hint"><strong>Demo:</strong> the data is real, and the model is a script that answers only these questions.</p>
          <DemoQuestions />
          <p class="buttons"><UseYourModel /></p>
        </section>
      )}
      {own.data && own.data.length > 0 && <section aria-label="Graphs"><h2>Or start a graph</h2><GraphRows all={own.data} /></section>}
      {known.data && isDemo === false && <FirstSteps servers={known.data.agents.length} problems={known.data.problems} onCheck={known.reload} />}
    </section>
  );
}
