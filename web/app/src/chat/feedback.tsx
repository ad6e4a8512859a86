/** What readers think of an answer: a thumb, labels and a note, kept in the thread's metadata. */

import { useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { Json } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { attempt } from "../parts/notice.tsx";
import { readable } from "../parts/text.ts";

/** A score of one turn: 1 or -1; labels and note are those of its case in a data set. */
export interface Feedback {
  score: number;
  /** The message that was rated: another branch has another answer in the same turn. */
  answer?: string;
  note?: string;
  labels?: string[];
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
  /** Id of the answer. */
  answer: string | undefined;
  /** The feedback of all turns. */
  all: { [turn: string]: Feedback };
  onChange: (all: { [turn: string]: Feedback }) => void;
}

/** Reads labels that are separated by commas. */
const labelsOf = (text: string) => [...new Set(text.split(",").map((label) => label.trim()).filter(Boolean))];

export function FeedbackButtons({ thread, turn, answer, all, onChange }: Props) {
  const mine = all[turn]?.answer === undefined || all[turn].answer === answer ? all[turn] : undefined;
  const [draft, setDraft] = useState<{ score: number; note: string; labels: string } | null>(null);
  async function keep(feedback: Feedback) {
    return attempt(async () => {
      // Others rate too, and the server replaces the feedback of all turns.
      const next = { ...feedbackOf((await threads.status(thread))?.metadata ?? null), [turn]: { ...feedback, ...(answer && { answer }) } };
      await threads.annotate(thread, { [KEY]: next as unknown as Json });
      onChange(next);
    });
  }
  function rate(score: number) {
    void keep({ ...mine, score });
    setDraft({ score, note: mine?.note ?? "", labels: mine?.labels?.join(", ") ?? "" });
  }
  async function save(event: Event) {
    event.preventDefault();
    if (!draft) return;
    const labels = labelsOf(draft.labels);
    const isKept = await keep({ score: draft.score, ...(draft.note.trim() && { note: draft.note.trim() }), ...(labels.length > 0 && { labels }) });
    if (isKept) setDraft(null);
  }
  return (
    <>
      <button type="button" class="square" aria-label="Good answer" title="Good answer" aria-pressed={mine?.score === 1} onClick={() => rate(1)}><Icon name="up" /></button>
      <button type="button" class="square" aria-label="Bad answer" title="Bad answer" aria-pressed={mine?.score === -1} onClick={() => rate(-1)}><Icon name="down" /></button>
      {draft && (
        <form class="feedback-note" onSubmit={(event) => void save(event)}>
          <input aria-label="Note" placeholder={draft.score === 1 ? "What is good about it?" : "What is wrong with it?"} value={draft.note} onInput={(event) => setDraft({ ...draft, note: event.currentTarget.value })} />
          <input aria-label="Labels" placeholder="Labels, separated by commas" value={draft.labels} onInput={(event) => setDraft({ ...draft, labels: event.currentTarget.value })} />
          <button type="submit">Save</button>
        </form>
      )}
      {!draft && mine && (mine.note || mine.labels) && <span class="hint small">{[mine.note, ...(mine.labels ?? [])].filter(Boolean).map((text) => readable(String(text))).join(" · ")}</span>}
    </>
  );
}
