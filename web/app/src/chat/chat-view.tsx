/** A thread as a conversation, with the star beside it. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Reply } from "../api/approvals.ts";
import { runs, threads } from "../api/threads.ts";
import type { Checkpoint, Interrupt, Message, Planner, Values } from "../api/types.ts";
import { useLoad } from "../parts/load.ts";
import { attempt, complain } from "../parts/notice.tsx";
import { Empty, Failure, Loading } from "../parts/states.tsx";
import { agentName, clip, contentText, readable } from "../parts/text.ts";
import { AskCard } from "../people/ask-card.tsx";
import { go, link } from "../router.ts";
import { ThreadPlaces } from "../inspector/head.tsx";
import { agents } from "../data/agents.ts";
import { threadsChanged } from "./changed.ts";
import { Composer } from "./composer.tsx";
import { Conversation, type Request } from "./conversation.ts";
import { MessageView } from "./message.tsx";
import { Citations, Findings, ResultCard } from "./results.tsx";
import { Scroller } from "./scroller.tsx";
import { Star } from "./star.tsx";
import { ThreadList } from "./thread-list.tsx";
import { arrival, endedEarly } from "./turns.ts";
import { Workers } from "./workers.tsx";

export function ChatView({ thread }: { thread: string | undefined }) {
  return (
    <div class={thread ? "chat with-thread" : "chat"}>
      <ThreadList current={thread} />
      {thread ? <OpenThread key={thread} thread={thread} /> : <NewThread />}
    </div>
  );
}

/** Milliseconds between looks whether another tab or process began a run in the open thread. */
const LOOK = 5_000;

/** Asks in a thread of its own, and shows that. */
async function begin(request: Request) {
  await attempt(async () => {
    const thread = await threads.create({ title: request.question.slice(0, 80) });
    await runs.start(thread.thread_id, { input: request });
    threadsChanged.value += 1;
    go("chat", thread.thread_id);
  });
}

function NewThread() {
  const known = useLoad(agents.names, []);
  return (
    <section class="conversation new">
      <h1>What do you want to know?</h1>
      <Composer agents={known.data ?? []} busy={false} onSend={(request) => void begin(request)} onStop={() => {}} autoFocus />
    </section>
  );
}

function OpenThread({ thread }: { thread: string }) {
  const conversation = useMemo(() => new Conversation(thread), [thread]);
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && void conversation.look().catch(() => {});
    const timer = setInterval(look, LOOK);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      conversation.close();
    };
  }, [conversation]);
  const known = useLoad(agents.names, []);
  const [cited, setCited] = useState<number | null>(null);
  const [editing, setEditing] = useState<{ text: string; at: Checkpoint | null } | null>(null);
  const values = conversation.values.value ?? {};
  const live = conversation.live.value;
  const busy = conversation.run.value !== null;
  const open = conversation.interrupts.value;
  const early = endedEarly(values);
  const asked = values.messages?.findLast((message) => message.type === "human");

  function cite(number: number) {
    setCited(number);
    requestAnimationFrame(() => document.getElementById(`cite-${number}`)?.scrollIntoView({ block: "nearest" }));
  }
  async function send(request: Request) {
    const edited = editing;
    setEditing(null);
    // The first turn has nothing before it that a branch could begin at.
    if (edited && !edited.at) return begin(request);
    const only = open.length === 1 && open[0]?.value.kind === "clarification" ? open[0] : undefined;
    await attempt(() => (only && !edited ? conversation.answer(only.id, { answer: request.question }) : conversation.ask(request, edited?.at)));
  }
  /** Asks the same once more, with the same options: a branch where the turn began. */
  const again = (message: Message) => attempt(async () => conversation.branch((await arrival(thread, message)).at));
  const answer = (interrupt: Interrupt, reply: Reply) => attempt(() => conversation.answer(interrupt.id, reply));
  async function edit(message: Message) {
    try {
      setEditing({ text: contentText(message.content), at: (await arrival(thread, message)).before });
    } catch (error) {
      complain(error);
    }
  }

  if (conversation.isGone.value) {
    return (
      <section class="conversation">
        <h1 class="hidden">Conversation</h1>
        <Empty title="Thread not found"><p>It was deleted or belongs to another user. <a href={link("chat")}>Go to threads</a></p></Empty>
      </section>
    );
  }
  if (conversation.loading.value) return <section class="conversation"><Loading what="the thread" /></section>;
  return (
    <>
      <section class="conversation" aria-label="Conversation">
        <h1 class="hidden">{readable(values.messages?.[0] ? clip(contentText(values.messages[0].content), 80) : "Conversation")}</h1>
        <p class="to-threads"><a href={link("chat")}>← Threads</a></p>
        <Scroller busy={busy} asks={open.length}>
          {(values.messages ?? []).map((message, index) => (
            <MessageView key={message.id ?? index} message={message} onCite={cite} {...(message.type === "human" && !busy && { onEdit: () => void edit(message), onAgain: () => void again(message) })} />
          ))}
          {!busy && <Citations citations={ofTurn(values.citations, values)} results={ofTurn(values.results, values)} opened={cited} />}
          {!busy && <Findings thread={thread} results={ofTurn(values.results, values)} />}
          {[...live.writing].filter(([, piece]) => piece.text.trim()).map(([id, piece]) => (
            <MessageView key={id} writing message={{ id, type: "ai", name: piece.name === "qa" ? "qa" : piece.name, content: piece.text }} onCite={cite} />
          ))}
          {busy && <Working line={live.progress[live.progress.length - 1]} lost={conversation.connection.value === "lost"} />}
          {early && !busy && asked && <Failure error={new Error(`This turn ended early: ${early}`)} retry={() => void again(asked)} />}
          {conversation.error.value && <Failure error={new Error(conversation.error.value)} retry={() => void attempt(() => conversation.resume())} />}
          {conversation.stopped.value && !busy && (
            <p class="working">The run was stopped. <button type="button" onClick={() => void attempt(() => conversation.resume())}>Continue</button></p>
          )}
          {open.map((interrupt) => <AskCard key={interrupt.id} kind={String(interrupt.value.kind ?? "")} payload={interrupt.value} onAnswer={(reply) => answer(interrupt, reply)} />)}
        </Scroller>
        {editing && <p class="hint editing">{editing.at ? "You are editing an earlier turn. The answer starts a branch there." : "You are editing the first turn. The answer starts a new thread."} <button type="button" class="link" onClick={() => setEditing(null)}>Cancel</button></p>}
        <Composer agents={known.data ?? []} busy={busy} draft={editing?.text ?? ""} onSend={(request) => void send(request)} onStop={() => void attempt(() => conversation.stop())} />
      </section>
      <aside class="side" aria-label="The run">
        <ThreadPlaces thread={thread} here="Conversation" />
        <Star agents={known.data ?? []} tasks={live.tasks.values()} results={ofTurn(values.results, values)} chosen={values.next_step ?? []} open={open} />
        <Workers tasks={ofTurn(values.tasks, values)} results={ofTurn(values.results, values)} live={live.tasks.values()} progress={live.progress} open={open} busy={busy} />
        {(values.plan?.length ?? 0) > 0 && (
          <section>
            <h2>Plan</h2>
            <ol class="plan">{values.plan?.map((step, index) => <li key={index}>{readable(step)}</li>)}</ol>
            {values.planner && <Decision planner={values.planner} />}
          </section>
        )}
        {live.progress.length > 0 && (
          <details open={busy}>
            <summary>Progress</summary>
            <ol class="progress">{live.progress.slice(-40).map((line, index) => <li key={index} class={line.bad ? "bad" : ""}><strong>{agentName(line.agent)}</strong> {readable(line.text)}</li>)}</ol>
          </details>
        )}
        {ofTurn(values.results, values).length > 0 && (
          <section>
            <h2>Results</h2>
            {ofTurn(values.results, values).map((result, index) => <ResultCard key={result.id ?? index} thread={thread} result={result} />)}
          </section>
        )}
      </aside>
    </>
  );
}

/** Why the supervisor planned as it did. */
function Decision({ planner }: { planner: Planner }) {
  return (
    <details>
      <summary>Decision</summary>
      {planner.rationale && <p>{readable(planner.rationale)}</p>}
      {(planner.order?.length ?? 0) > 0 && <p class="hint">Order: {planner.order?.map(agentName).map(readable).join(", ")}</p>}
      {typeof planner.confidence === "number" && <p class="hint">Confidence {Math.round(planner.confidence * 100)} %</p>}
      {(planner.guardrails?.length ?? 0) > 0 && <ul class="hint">{planner.guardrails?.map((rule) => <li key={rule}>{readable(rule)}</li>)}</ul>}
    </details>
  );
}

function ofTurn<T extends { turn?: number }>(items: T[] | undefined, values: Values): T[] {
  return (items ?? []).filter((item) => item.turn === undefined || item.turn === values.turn);
}

function Working({ line, lost }: { line: { agent: string; text: string } | undefined; lost: boolean }) {
  return (
    <p class="working" role="status">
      <span class="dot" aria-hidden="true" />
      {lost ? "Connection lost. Reconnecting…" : line ? `${agentName(line.agent)} ${readable(line.text)}` : "Working…"}
    </p>
  );
}
