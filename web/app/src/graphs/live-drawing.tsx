/** The drawing of a thread's graph, with the nodes that work, ended or wait. */

import { useMemo } from "preact/hooks";
import { graphs } from "../api/graphs.ts";
import { threads } from "../api/threads.ts";
import type { Conversation } from "../chat/conversation.ts";
import { useLoad } from "../parts/load.ts";
import { Shown } from "../parts/states.tsx";
import { GraphDrawing } from "./drawing.tsx";
import { recorded, withLive } from "./nodes.ts";

/** Steps that are read: those of the newest input are among them, but for very long runs. */
const STEPS = 40;

export function LiveDrawing({ conversation, graph }: { conversation: Conversation; graph: string }) {
  const { thread, run, values } = conversation;
  const drawing = useLoad(() => graphs.drawing(graph), [graph]);
  // While a run is under way, its events say how the nodes stand.
  const steps = useLoad(() => threads.history(thread, STEPS), [thread, run.value?.run_id, run.value === null && values.value], { keep: true });
  const tasks = conversation.live.value.tasks;
  const standings = useMemo(() => withLive(recorded(steps.data ?? []), tasks.values()), [steps.data, tasks]);
  return <Shown of={drawing} what="the graph">{(drawn) => <GraphDrawing name={graph} drawing={drawn} standings={standings} />}</Shown>;
}
