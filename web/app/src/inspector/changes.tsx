/** What differs between two values, in words: messages as messages, numbers as before and after, text word by word. */

import type { ComponentChildren } from "preact";
import { contentText, clip, agentName, readable } from "../parts/text.ts";
import { Markdown } from "../parts/markdown.tsx";
import { count } from "../parts/time.tsx";
import type { Change } from "./difference.ts";
import { byWords } from "./words.ts";

/** Changes that are shown. */
const SHOWN = 100;

/** Fields of messages that no reader needs. */
const METADATA = /(^|\.)(additional_kwargs|response_metadata|usage_metadata)(\.|$)/;

export function Changes({ changes }: { changes: Change[] }) {
  const shown = changes.filter((change) => !METADATA.test(change.path));
  return (
    <>
      <dl class="changes">
        {shown.slice(0, SHOWN).map((change, index) => (
          <div key={index} class="change">
            <dt>{label(change.path)}</dt>
            <dd><ChangeView change={change} /></dd>
          </div>
        ))}
      </dl>
      {shown.length > SHOWN && <p class="hint">{shown.length - SHOWN} more changes.</p>}
    </>
  );
}

/** Writes the path of a value as people read it: `spent.input_tokens` as "Spent · input tokens", places counted from 1. */
function label(path: string): string {
  const words = path.split(".").map((part) => (/^\d+$/.test(part) ? ` ${Number(part) + 1}` : ` · ${part.replaceAll("_", " ").trim()}`)).join("").replace(/^[ ·]+/, "");
  return readable(words && words[0]?.toUpperCase() + words.slice(1)) || "All of it";
}

interface Said {
  type: string;
  name?: string | null;
  content: string;
}

/** Reads a message. */
function saidOf(value: unknown): Said | null {
  if (typeof value !== "object" || value === null) return null;
  const { type, name, content } = value as Partial<Said>;
  return typeof type === "string" && (typeof content === "string" || Array.isArray(content)) ? { type, name: name ?? null, content: contentText(content) } : null;
}

function ChangeView({ change }: { change: Change }) {
  const { before, after } = change;
  if (before === undefined || before === null) return <span class="new"><Side value={after} /></span>;
  if (after === undefined || after === null) return <span class="old"><Side value={before} /></span>;
  if (typeof before === "number" && typeof after === "number") return <>{count(before)} → {count(after)} <span class="hint">({after > before ? "+" : ""}{count(after - before)})</span></>;
  const isWord = (value: unknown) => typeof value === "string" && !/\s/.test(value);
  if (typeof before === "string" && typeof after === "string" && !(isWord(before) && isWord(after))) {
    return <span class="words">{byWords(before, after).map((part, index) => (part.kind === "same" ? readable(part.text) : <span key={index} class={part.kind}>{readable(part.text)}</span>))}</span>;
  }
  return <><span class="old"><Side value={before} /></span> → <span class="new"><Side value={after} /></span></>;
}

/** Characters of a value that are shown. */
const LONGEST = 2_000;

function Side({ value }: { value: unknown }): ComponentChildren {
  const said = saidOf(value);
  if (said) {
    const by = said.type === "human" ? "You" : said.name && said.name !== "qa" ? agentName(said.name) : "Answer";
    return <div class="said"><p class="small hint">{readable(by)}</p><Markdown text={clip(said.content, LONGEST)} /></div>;
  }
  if (typeof value === "string") return <>{readable(clip(agentName(value), LONGEST))}</>;
  if (typeof value !== "object" || value === null) return <>{value === undefined || value === null ? "none" : String(value)}</>;
  const fields = Object.entries(value).filter(([, part]) => part !== null && part !== "" && !(typeof part === "object" && Object.keys(part as object).length === 0));
  if (fields.length === 0) return <>empty</>;
  return (
    <dl class="fields">
      {fields.map(([name, part]) => [<dt key={`${name}:`}>{readable(name.replaceAll("_", " "))}</dt>, <dd key={name}>{readable(clip(typeof part === "string" ? part : JSON.stringify(part), 400))}</dd>])}
    </dl>
  );
}
