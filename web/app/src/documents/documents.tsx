/** Documents: added, found by what they say, opened. */

import { useState } from "preact/hooks";
import { documents } from "../api/documents.ts";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { Status } from "../parts/status.tsx";
import { Time, count, plural } from "../parts/time.tsx";
import { fieldsOf, number, text, type Fields } from "../data/fields.ts";
import { Records } from "../data/records.tsx";
import { DocumentView } from "./document.tsx";
import { placed } from "./place.ts";
import { ChooseFiles, DropZone, Sendings, useUploads } from "./uploads.tsx";

export function DocumentsView({ id, query }: { id: string | undefined; query: URLSearchParams }) {
  const [reads, setReads] = useState(0);
  const uploads = useUploads(() => setReads((before) => before + 1));
  if (id) return <DocumentView key={`${id} ${query}`} id={id} query={query} />;
  return (
    <Records
      title="Documents"
      path="v1/documents"
      key_="documents"
      id={(row) => text(row.id)}
      name={(row) => text(row.title) || text(row.path)}
      about={(row) => `${text(fieldsOf(row.description).summary)} ${text(row.path)}`}
      table={{ heads: HEADS, cells }}
      empty={<><p>Agents quote the files that you add.</p><p class="buttons"><ChooseFiles onFiles={(files) => void uploads.send(files)} /></p></>}
      above={<><DropZone onFiles={(files) => void uploads.send(files)} /><Sendings all={uploads.all} forget={uploads.forget} /></>}
      reads={reads}
      found={(words) => <DocumentHits words={words} />}
    />
  );
}

const HEADS = { Document: "", Status: "", Format: "", Characters: "number", Pages: "number", Passages: "number", Version: "number", Changed: "" } as const;

function cells(row: Fields) {
  const warnings = Array.isArray(row.warnings) ? row.warnings.map(text) : [];
  const status = warnings.length > 0 ? plural(warnings.length, "warning") : number(row.chunks) > 0 ? "searchable" : "no text";
  return (
    <>
      <td class="main"><a href={placed(text(row.id))}>{readable(text(row.title) || text(row.path))}</a> <span class="hint small">{readable(text(fieldsOf(row.description).summary) || text(row.path))}</span></td>
      <td class="num" title={warnings.map(readable).join("\n")}><Status of={status === "searchable" ? "done" : "failed"} words={status} /> <span class="hint small">{status}</span></td>
      <td>{readable(text(row.format))}</td>
      <td class="number num">{count(number(row.characters))}</td>
      <td class="number num">{number(row.pages) > 0 ? count(number(row.pages)) : "–"}</td>
      <td class="number num">{count(number(row.chunks))}</td>
      <td class="number num">{count(number(row.version))}</td>
      <td><Time of={text(row.changed_at)} /></td>
    </>
  );
}

function DocumentHits({ words }: { words: string }) {
  const hits = useLoad(() => documents.search(words), [words], { keep: true });
  return (
    <section aria-label="Passages">
      <h2>Passages</h2>
      <Shown of={hits} what="passages">
        {(all) => (all.length === 0 ? <Empty title="No matching passages" /> : all.map((hit) => (
          <article key={`${hit.document} ${hit.start}`} class="card">
            <p><a href={placed(hit.document, hit.start, hit.end)}>{readable(hit.title)}</a> <span class="hint">{[hit.page && `page ${hit.page}`, hit.section && readable(hit.section)].filter(Boolean).join(", ")}</span></p>
            <blockquote>{readable(hit.quote)}</blockquote>
          </article>
        )))}
      </Shown>
    </section>
  );
}
