/** One turn: question, activity, answer, data, sources. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { FoundRun } from "../api/runs.ts";
import type { Message } from "../api/types.ts";
import { CopyButton } from "../parts/copy.tsx";
import { contentText } from "../parts/text.ts";
import { DoneActivity, LiveActivity } from "./activity.tsx";
import { cited } from "./cited.ts";
import type { Conversation } from "./conversation.ts";
import { FeedbackButtons } from "./feedback.tsx";
import { Findings } from "./findings.tsx";
import { idle } from "./live.ts";
import { Answer, Question } from "./message.tsx";
import { CitationHover, SourceLines } from "./sources.tsx";
import type { Turn } from "./turns.ts";

interface Props {
  thread: string;
  turn: Turn;
  /** The turn's runs, newest first. */
  runs: FoundRun[];
  conversation: Conversation;
  /** What people decided while it was worked on. */
  decisions: ComponentChildren;
  /** Number of the source that is open. */
  opened: number | null;
  onCite: (number: number) => void;
  onEdit?: ((message: Message) => void) | undefined;
  onAgain?: ((message: Message) => void) | undefined;
}

/** What agents write is shown with their work. */
const isAnswer = (name: string) => !name.startsWith("mcp_agent_");

export function TurnView({ thread, turn, runs, conversation, decisions, opened, onCite, onEdit, onAgain }: Props) {
  const { question, clarifications, answers, work, isNewest } = turn;
  const sources = useMemo(() => cited(turn), [turn]);
  const isOver = !isNewest || conversation.run.value === null;
  // Only the newest turn changes with each event.
  const live = isNewest ? conversation.live.value : idle;
  const open = isNewest ? conversation.interrupts.value : [];
  // What is written stays the same element when it is whole, so that the reader's place stays, too.
  const writing = isOver ? [] : [...live.writing].filter(([, piece]) => piece.text.trim() && isAnswer(piece.name)).map(([id, piece]): Message => ({ id, type: "ai", name: piece.name, content: piece.text }));
  const known = new Set(answers.map((message) => message.id));
  const shown = [...answers, ...writing.filter((message) => !known.has(message.id))];
  return (
    <div class="turn">
      {question && <Question message={question} onEdit={onEdit && (() => onEdit(question))} onAgain={onAgain && (() => onAgain(question))} />}
      {clarifications.map((message, index) => (message.type === "human" ? <Question key={message.id ?? index} message={message} /> : <Answer key={message.id ?? index} message={message} />))}
      {isOver && <DoneActivity thread={thread} work={work} live={live} open={open} isNewest={isNewest} runs={runs} />}
      {!isOver && <LiveActivity work={work} live={live} open={open} lost={conversation.connection.value === "lost"} since={conversation.run.value?.created_at} isWriting={shown.length > 0} />}
      {decisions}
      {shown.map((message, index) => <Answer key={message.id ?? index} message={message} onCite={onCite} writing={!isOver && !known.has(message.id)} />)}
      {isOver && <Findings thread={thread} results={work.results} />}
      {isOver && <SourceLines sources={sources} opened={opened} onOpen={onCite} />}
      {isOver && answers.length > 0 && <footer class="message-tools"><CopyButton text={answers.map((message) => contentText(message.content)).join("\n\n")} label="Copy the answer" /> <FeedbackButtons thread={thread} turn={turn.number} answer={answers.at(-1)?.id} all={conversation.feedback.value} onChange={(all) => (conversation.feedback.value = all)} /></footer>}
      <CitationHover sources={sources} />
    </div>
  );
}
