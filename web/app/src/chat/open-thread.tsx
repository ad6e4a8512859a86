/** An open thread: its turns, the work under way, what waits for a person, and the panel beside it. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Reply } from "../api/approvals.ts";
import type { Interrupt, Message, ThreadState } from "../api/types.ts";
import { isOwn } from "../api/graphs.ts";
import { reachable } from "../api/reachable.ts";
import { ofThread } from "../api/runs.ts";
import { agents } from "../data/agents.ts";
import { GraphThread } from "../graphs/graph-thread.tsx";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt, complain } from "../parts/notice.tsx";
import { Empty, Failure, Loading, isOutage } from "../parts/states.tsx";
import { contentText } from "../parts/text.ts";
import { AskCard } from "../people/ask-card.tsx";
import { go, link, putQuery, route } from "../router.ts";
import { cited } from "./cited.ts";
import { Composer } from "./composer.tsx";
import { begin, isJustBegun, type Conversation, type Request, type Sending } from "./conversation.ts";
import { Decisions } from "./decisions.tsx";
import { EMPTY, keepDraft } from "./draft.ts";
import { Panel, useWide } from "./panel.tsx";
import { Scroller } from "./scroller.tsx";
import { SourceCard } from "./sources.tsx";
import { runsOf } from "./runs-of-turns.ts";
import { ResultCard } from "./results.tsx";
import { ThreadHead } from "./thread-head.tsx";
import { TurnView } from "./turn-view.tsx";
import { arrival, endedEarly, turnsOf } from "./turns.ts";
import { useConversation } from "./use-conversation.ts";

export function OpenThread({ thread }: { thread: string }) {
  const conversation = useConversation(thread);
  const graph = conversation.graph.value;
  if (conversation.isGone.value) return <Gone />;
  if (conversation.unread.value) return <Unread error={conversation.unread.value} retry={() => void conversation.open()} />;
  if (conversation.loading.value) return <section class="conversation"><Loading what="the thread" /></section>;
  return isOwn(graph) ? <GraphThread conversation={conversation} graph={graph} /> : <Dialogue conversation={conversation} />;
}

/** A thread of the supervisor graph: turns of questions and answers. */
function Dialogue({ conversation }: { conversation: Conversation }) {
  const { thread } = conversation;
  const known = useLoad(agents.names, []);
  const isWide = useWide();
  /** The turn and number of the source that is open, or the run's details. */
  const [panel, setPanel] = useState<Shown | null>(() => sourceIn(route.value.query));
  const [editing, setEditing] = useState<{ text: string; place: string; at: ThreadState | null } | null>(null);
  const [sent, setSent] = useState(isJustBegun(thread) ? 1 : 0);
  const values = conversation.values.value ?? {};
  const run = conversation.run.value;
  const busy = run !== null;
  const open = conversation.interrupts.value;
  const early = endedEarly(values);
  const turns = useMemo(() => turnsOf(values), [values]);
  const found = useLoad(() => ofThread(thread), [thread, run?.run_id], { keep: true });
  const runs = useMemo(() => runsOf(turns, found.data ?? []), [turns, found.data]);
  const newest = turns.at(-1);
  const asked = newest?.question;

  async function send(request: Request, sending: Sending) {
    // The first turn has nothing before it that a branch could begin at.
    if (editing && !editing.at) return go("chat", await begin(request, sending));
    setSent(sent + 1);
    if (sending.answers) await conversation.answer(sending.answers, { answer: request.question }, sending.isRetry);
    else await conversation.ask(request, sending, editing?.at);
    setEditing(null);
  }
  /** Asks the same once more, with the same options: a branch where the turn began. */
  const again = (message: Message) => attempt(async () => conversation.branch(await arrival(thread, message), contentText(message.content)));
  const answer = (interrupt: Interrupt, reply: Reply) => attempt(() => conversation.answer(interrupt.id, reply));
  const edit = (message: Message) => arrival(thread, message).then(({ before }) => setEditing({ text: contentText(message.content), place: `${thread} ${message.id ?? "first"}`, at: before }), complain);
  const clarification = open.length === 1 && open[0]?.value.kind === "clarification" && !editing ? open[0].id : undefined;

  const results = newest?.work.results ?? [];
  const shown = panel ?? (isWide && results.length > 0 ? "run" : "closed");
  useEffect(() => putQuery({ source: typeof panel === "object" && panel ? `${panel.turn + 1}.${panel.number}` : null }), [panel]);
  const source = typeof shown === "object" ? sourceOf(turns[shown.turn], shown.number) : undefined;
  return (
    <div class={shown === "closed" ? "chat" : "chat with-panel"}>
      <ThreadHead thread={thread} here="Chat" status={conversation.status}>
        <button type="button" class="square" aria-label="Run details" title="Run details" aria-expanded={shown !== "closed"} disabled={results.length === 0} onClick={() => setPanel(shown === "closed" ? "run" : "closed")}><Icon name="panel" /></button>
      </ThreadHead>
      <section class="conversation" aria-label="Conversation">
        <Scroller busy={busy} asks={open.length} newest={asked?.id} asked={sent}>
          {turns.map((turn, index) => (
            <TurnView
              key={turn.question?.id ?? index}
              thread={thread}
              turn={turn}
              runs={runs[index] ?? []}
              conversation={conversation}
              decisions={turn.isNewest && turn.work.tasks.length > 0 && <Decisions thread={thread} since={conversation.began.value} key_={`${run?.run_id} ${open.length}`} />}
              opened={typeof shown === "object" && shown.turn === index ? shown.number : null}
              onCite={(number) => setPanel({ turn: index, number })}
              onEdit={busy ? undefined : (message) => void edit(message)}
              onAgain={busy ? undefined : (message) => void again(message)}
            />
          ))}
          {early && !busy && asked && <Failure error={new Error(`This turn ended early: ${early}`)} retry={() => void again(asked)} />}
          {conversation.error.value && !(early && !busy) && <Failure error={new Error(conversation.error.value)} retry={() => void attempt(() => conversation.resume())} />}
          {conversation.stopped.value && !busy && (
            <p class="stopped">The run was stopped. <button type="button" onClick={() => void attempt(() => conversation.resume())}>Continue</button></p>
          )}
          {open.map((interrupt) => <AskCard key={interrupt.id} place={interrupt.id} kind={String(interrupt.value.kind ?? "")} payload={interrupt.value} onAnswer={(reply) => answer(interrupt, reply)} />)}
        </Scroller>
        {editing && <p class="hint editing">{editing.at ? "You are editing an earlier turn. The answer starts a branch there." : "You are editing the first turn. The answer starts a new thread."} <button type="button" class="link" onClick={() => (keepDraft(editing.place, EMPTY), setEditing(null))}>Cancel</button></p>}
        <Composer key={editing?.place ?? "own"} thread={thread} agents={known.data ?? []} busy={busy} answering={clarification} {...(editing && { edited: editing, autoFocus: true })} onSend={send} onStop={() => void attempt(() => conversation.stop())} />
      </section>
      {shown !== "closed" && (
        <Panel title={source ? "Source" : "Run details"} onClose={() => setPanel("closed")}>
          {source ? <SourceCard source={source} /> : results.map((result, index) => <ResultCard key={result.id ?? index} thread={thread} result={result} isOpen={results.length === 1} />)}
        </Panel>
      )}
    </div>
  );
}

/** What stands beside the conversation. */
type Shown = { turn: number; number: number } | "run" | "closed";

/** Returns the source that an address names: its turn and number. */
function sourceIn(query: URLSearchParams): Shown | null {
  const [turn = 0, number = 0] = (query.get("source") ?? "").split(".").map(Number);
  return turn > 0 && number > 0 ? { turn: turn - 1, number } : null;
}

const sourceOf = (turn: ReturnType<typeof turnsOf>[number] | undefined, number: number) => turn && cited(turn).find((one) => one.number === number);

function Unread({ error, retry }: { error: Error; retry: () => void }) {
  // The banner says what is wrong, and that it is tried again.
  const isBack = reachable.value;
  useEffect(() => {
    if (isBack && isOutage(error)) retry();
  }, [isBack, error]);
  return (
    <section class="conversation">
      <h1 class="hidden">Conversation</h1>
      {isOutage(error) ? <Empty title="Not loaded yet"><p>The conversation is shown once Perihelion can be reached.</p></Empty> : <Failure error={error} retry={retry} />}
    </section>
  );
}

function Gone() {
  return (
    <section class="conversation">
      <h1 class="hidden">Conversation</h1>
      <Empty title="Thread not found"><p>It was deleted or belongs to another user. <a href={link("threads")}>Go to threads</a></p></Empty>
    </section>
  );
}
