/** One turn: question, activity, answer, data, sources. */

import { useMemo } from "preact/hooks";
import type { Message } from "../api/types.ts";
import { CopyButton } from "../parts/copy.tsx";
import { contentText } from "../parts/text.ts";
import { DoneActivity } from "./activity.tsx";
import { cited } from "./cited.ts";
import type { Conversation } from "./conversation.ts";
import { Findings } from "./findings.tsx";
import { idle } from "./live.ts";
import { Answer, Question } from "./message.tsx";
import { CitationHover, SourceLines } from "./sources.tsx";
import type { Turn } from "./turns.ts";

interface Props {
  thread: string;
  turn: Turn;
  conversation: Conversation;
  /** Number of the source that is open. */
  opened: number | null;
  onCite: (number: number) => void;
  onEdit?: ((message: Message) => void) | undefined;
  onAgain?: ((message: Message) => void) | undefined;
}

export function TurnView({ thread, turn, conversation, opened, onCite, onEdit, onAgain }: Props) {
  const { question, answers, work, isNewest } = turn;
  const sources = useMemo(() => cited(turn.citations, work.results), [turn.citations, work.results]);
  const isOver = !isNewest || conversation.run.value === null;
  const run = isNewest ? conversation.lastRun.value : null;
  const ms = run?.updated_at ? new Date(run.updated_at).getTime() - new Date(run.created_at).getTime() : null;
  const tokens = work.results.reduce((sum, result) => sum + (result.usage?.input_tokens ?? 0) + (result.usage?.output_tokens ?? 0), 0);
  return (
    <div class="turn">
      {question && <Question message={question} onEdit={onEdit && (() => onEdit(question))} onAgain={onAgain && (() => onAgain(question))} />}
      {isOver && <DoneActivity thread={thread} work={work} live={isNewest ? conversation.live.value : idle} open={isNewest ? conversation.interrupts.value : []} isNewest={isNewest} ms={ms} tokens={tokens} />}
      {answers.map((message, index) => <Answer key={message.id ?? index} message={message} onCite={onCite} />)}
      {isOver && <Findings thread={thread} results={work.results} />}
      {isOver && <SourceLines sources={sources} opened={opened} onOpen={onCite} />}
      {isOver && answers.length > 0 && <footer class="message-tools"><CopyButton text={answers.map((message) => contentText(message.content)).join("\n\n")} label="Copy the answer" /></footer>}
      <CitationHover sources={sources} />
    </div>
  );
}
