/** An open thread of a graph that the program brought along: messages, what runs, what waits for a person, the state, the next input. */

import { useState } from "preact/hooks";
import type { Reply } from "../api/approvals.ts";
import { graphs } from "../api/graphs.ts";
import type { Interrupt, Message } from "../api/types.ts";
import { isJustBegun, type Conversation } from "../chat/conversation.ts";
import { Answer, Question } from "../chat/message.tsx";
import { Panel, useWide } from "../chat/panel.tsx";
import { Scroller } from "../chat/scroller.tsx";
import { ThreadHead } from "../chat/thread-head.tsx";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import type { Fields } from "../parts/schema.ts";
import { Failure, Shown } from "../parts/states.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { AskCard } from "../people/ask-card.tsx";
import { LiveDrawing } from "./live-drawing.tsx";
import { StartForm, takesMessages } from "./start-form.tsx";
import { StateCard } from "./state-card.tsx";

export function GraphThread({ conversation, graph }: { conversation: Conversation; graph: string }) {
  const { thread } = conversation;
  const schemas = useLoad(() => graphs.schemas(graph), [graph]);
  const isWide = useWide();
  const [panel, setPanel] = useState<boolean | null>(null);
  const [sent, setSent] = useState(isJustBegun(thread) ? 1 : 0);
  const newest = conversation.values.value?.messages?.findLast(({ type }) => type === "human")?.id;
  const isShown = panel ?? isWide;
  const busy = conversation.run.value !== null;
  const open = conversation.interrupts.value;
  const values = (conversation.values.value ?? {}) as Fields;
  const answer = (interrupt: Interrupt, reply: Reply) => attempt(() => conversation.answer(interrupt.id, reply));
  return (
    <div class={isShown ? "chat with-panel" : "chat"}>
      <ThreadHead thread={thread} here="Chat" status={conversation.status}>
        <span class="chip">{readable(graph)}</span>
        <button type="button" class="square" aria-label="Graph" title="Graph" aria-expanded={isShown} onClick={() => setPanel(!isShown)}><Icon name="graph" /></button>
      </ThreadHead>
      <section class="conversation" aria-label="Run">
        <Shown of={schemas} what="the graph">
          {({ input_schema, state_schema }) => {
            const isChat = takesMessages(input_schema);
            const form = <StartForm schema={input_schema} action={isChat ? "Send" : "Start"} place={`form-${thread}`} onStart={(input, sending) => (setSent(sent + 1), conversation.ask(input, sending))} />;
            return (
              <>
                <Scroller busy={busy} asks={open.length} newest={isChat ? newest : undefined} asked={sent}>
                  {isChat && <Messages conversation={conversation} />}
                  <StateCard schema={state_schema} values={values} except={isChat ? ["messages"] : []} />
                  {busy && <Working conversation={conversation} />}
                  {conversation.error.value && !busy && <Failure error={new Error(conversation.error.value)} retry={() => void attempt(() => conversation.resume())} />}
                  {conversation.stopped.value && !busy && <p class="stopped">The run was stopped. <button type="button" onClick={() => void attempt(() => conversation.resume())}>Continue</button></p>}
                  {open.map((interrupt) => <AskCard key={interrupt.id} place={interrupt.id} kind={String(interrupt.value?.kind ?? "")} payload={interrupt.value} onAnswer={(reply) => answer(interrupt, reply)} />)}
                  {!isChat && !busy && open.length === 0 && <details class="card" open={Object.keys(values).length === 0}><summary>Start another run in this thread</summary>{form}</details>}
                </Scroller>
                {isChat && !busy && <div class="composer">{form}</div>}
              </>
            );
          }}
        </Shown>
      </section>
      {isShown && <Panel title="Graph" onClose={() => setPanel(false)}><LiveDrawing conversation={conversation} graph={graph} /></Panel>}
    </div>
  );
}

/** What was said, and what is being written. */
function Messages({ conversation }: { conversation: Conversation }) {
  const known = conversation.values.value?.messages ?? [];
  const writing = [...conversation.live.value.writing].filter(([, piece]) => piece.text.trim()).map(([id, piece]): Message => ({ id, type: "ai", content: piece.text }));
  return (
    <>
      {known.map((message, index) => (message.type === "human" ? <Question key={message.id ?? index} message={message} /> : <Answer key={message.id ?? index} message={message} />))}
      {conversation.run.value && writing.map((message) => <Answer key={message.id} message={message} writing />)}
    </>
  );
}

/** What a run is doing now. */
function Working({ conversation }: { conversation: Conversation }) {
  const { tasks, progress } = conversation.live.value;
  const nodes = [...new Set([...tasks.values()].filter((task) => task.state === "working" && !task.namespace).map((task) => task.name))];
  const line = progress.at(-1);
  const now = line ? `${agentName(line.agent)} ${clip(line.text, 160)}` : nodes.length > 0 ? `Running ${nodes.join(", ")}` : "Running";
  return (
    <p class="working" role="status">
      {conversation.connection.value === "lost" ? <><span class="dot bad" aria-hidden="true" /> Connection lost. Reconnecting…</> : <><span class="dot busy" aria-hidden="true" /> <span class="now">{readable(now)}</span></>}
      <button type="button" class="danger" onClick={() => void attempt(() => conversation.stop())}><Icon name="stop" /> Stop</button>
    </p>
  );
}
