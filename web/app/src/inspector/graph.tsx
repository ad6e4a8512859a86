/** The graph of a thread: the supervisor, its agents, who worked, who waits; or the nodes of another graph. */

import { isOwn } from "../api/graphs.ts";
import { threads } from "../api/threads.ts";
import { agents } from "../data/agents.ts";
import { Star } from "../chat/star.tsx";
import { ThreadHead } from "../chat/thread-head.tsx";
import { turnsOf } from "../chat/turns.ts";
import { useThread } from "../chat/use-thread.ts";
import { useConversation } from "../chat/use-conversation.ts";
import { LiveDrawing } from "../graphs/live-drawing.tsx";
import { Empty, Shown } from "../parts/states.tsx";

export function GraphView({ thread }: { thread: string }) {
  const read = useThread(thread, async () => {
    const [state, names] = await Promise.all([threads.get(thread), agents.names()]);
    return { state, names };
  });
  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Graph" />
      <div class="inspector-body">
        <Shown of={read} what="the graph">
          {({ state, names }) => {
            const graph = state.metadata?.graph_id;
            if (isOwn(graph)) return <OwnGraph thread={thread} graph={graph} />;
            const values = state.values ?? {};
            const open = Object.values(state.interrupts ?? {}).flat();
            const work = turnsOf(values).at(-1)?.work;
            if (names.length === 0 && !work) return <Empty title="No agents yet" />;
            return <Star agents={names} tasks={work?.tasks ?? []} results={work?.results ?? []} next={values.next_step ?? []} open={open} isBusy={state.status === "busy"} />;
          }}
        </Shown>
      </div>
    </div>
  );
}

function OwnGraph({ thread, graph }: { thread: string; graph: string }) {
  return <LiveDrawing conversation={useConversation(thread)} graph={graph} />;
}
