/** A document by its pages, or around a place of it; the quote that brought the reader here stands out. */

import { useEffect, useRef, useState } from "preact/hooks";
import { AROUND, documents, type DocumentHead, type Part } from "../api/documents.ts";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { count } from "../parts/time.tsx";
import { link } from "../router.ts";
import { cut } from "./place.ts";

/** Finds the document that an address means. */
async function find(id: string): Promise<DocumentHead | undefined> {
  return (await documents.list()).find((one) => one.id === id);
}

export function DocumentView({ id, query }: { id: string; query: URLSearchParams }) {
  const start = Number(query.get("start") ?? 0);
  const end = Number(query.get("end") ?? 0);
  /** The page that is open, or the character from which on; what the address names to begin with. */
  const [number, setNumber] = useState<number | null>(null);
  const [from, setFrom] = useState<number | null>(null);
  const opened = useLoad(async () => {
    const head = await find(id);
    if (!head) return null;
    const part = number !== null ? documents.page(head.id, number) : from !== null ? documents.from(head, from) : documents.around(head, start);
    return { head, part: await part };
  }, [id, start, number, from], { keep: true });
  return (
    <div class="document-view">
      <p><a href={link("documents")}>← Documents</a></p>
      <Shown of={opened} what="the document">
        {(found) => found === null ? <Empty title="Document not found"><p>It was deleted or belongs to another user.</p></Empty> : (
          <>
            <header class="view-head">
              <h1>{readable(found.head.title || found.head.path)}</h1>
              {found.part.number !== undefined && found.part.pages !== undefined
                ? <Pages number={found.part.number} pages={found.part.pages} onGo={setNumber} />
                : <Stretch part={found.part} of={found.head.characters} onGo={setFrom} />}
            </header>
            {found.head.warnings.map((warning) => <p key={warning} class="warn">{readable(warning)}</p>)}
            <Text part={found.part} start={start} end={end} />
          </>
        )}
      </Shown>
    </div>
  );
}

function Pages({ number, pages, onGo }: { number: number; pages: number; onGo: (number: number) => void }) {
  return (
    <span class="buttons">
      <button type="button" disabled={number <= 1} onClick={() => onGo(number - 1)} aria-label="Previous page">‹</button>
      <span>page {number} of {pages}</span>
      <button type="button" disabled={number >= pages} onClick={() => onGo(number + 1)} aria-label="Next page">›</button>
    </span>
  );
}

/** What is shown of a document without pages, and the ways on. */
function Stretch({ part: { start, end }, of, onGo }: { part: Part; of: number; onGo: (from: number) => void }) {
  return (
    <span class="buttons">
      <button type="button" disabled={start <= 0} onClick={() => onGo(Math.max(0, start - AROUND))} aria-label="Previous part">‹</button>
      <span class="hint">characters {count(start)} to {count(end)} of {count(of)}</span>
      <button type="button" disabled={end >= of} onClick={() => onGo(end)} aria-label="Next part">›</button>
    </span>
  );
}

function Text({ part, start, end }: { part: Part; start: number; end: number }) {
  const mark = useRef<HTMLElement>(null);
  const [before, quote, after] = cut(part.text, start - part.start, end - part.start);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [part]);
  return (
    <pre class="document" tabIndex={0} aria-label="Text">
      {readable(before)}
      {quote && <mark ref={mark}>{readable(quote)}</mark>}
      {readable(after)}
    </pre>
  );
}
