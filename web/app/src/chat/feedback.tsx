/** What readers think of an answer: a thumb and a note, kept in the thread's metadata. */

import { useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { Json } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { attempt } from "../parts/notice.tsx";

/** A score of one turn: 1 or -1. */
export interface Feedback {
  score: number;
  note?: string;
}

/** Key of a thread's metadata that has the feedback by turn. */
const KEY = "feedback";

/** Reads the feedback of all turns. */
export function feedbackOf(metadata: { [key: string]: Json } | null): { [turn: string]: Feedback } {
  const kept = metadata?.[KEY];
  return typeof kept === "object" && kept !== null && !Array.isArray(kept) ? (kept as unknown as { [turn: string]: Feedback }) : {};
}

interface Props {
  thread: string;
  turn: number;
  /** The feedback of all turns. */
  all: { [turn: string]: Feedback };
  onChange: (all: { [turn: string]: Feedback }) => void;
}

export function FeedbackButtons({ thread, turn, all, onChange }: Props) {
  const mine = all[turn];
  const [note, setNote] = useState<string | null>(null);
  async function keep(feedback: Feedback) {
    const next = { ...all, [turn]: feedback };
    if (await attempt(() => threads.annotate(thread, { [KEY]: next as unknown as Json }))) onChange(next);
  }
  async function saveNote(event: Event) {
    event.preventDefault();
    await keep({ score: mine?.score ?? -1, ...(note?.trim() && { note: note.trim() }) });
    setNote(null);
  }
  return (
    <>
      <button type="button" class="square" aria-label="Good answer" title="Good answer" aria-pressed={mine?.score === 1} onClick={() => void keep({ ...mine, score: 1 })}><Icon name="up" /></button>
      <button type="button" class="square" aria-label="Bad answer" title="Bad answer" aria-pressed={mine?.score === -1} onClick={() => (void keep({ ...mine, score: -1 }), setNote(mine?.note ?? ""))}><Icon name="down" /></button>
      {note !== null && (
        <form class="feedback-note" onSubmit={(event) => void saveNote(event)}>
          <input aria-label="Note" placeholder="What is wrong with it?" value={note} onInput={(event) => setNote(event.currentTarget.value)} />
          <button type="submit">Save</button>
        </form>
      )}
      {note === null && mine?.note && <span class="hint small">{mine.note}</span>}
    </>
  );
}
