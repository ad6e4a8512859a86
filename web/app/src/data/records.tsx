/** Lists that the server keeps: documents, skills, memories, teams; each found, opened and removed in the same way. */

import type { ComponentChildren } from "preact";
import { ServerError, json } from "../api/http.ts";
import { Icon } from "../parts/icon.tsx";
import { JsonView } from "../parts/json-view.tsx";
import { ListTable } from "../parts/list-table.tsx";
import { useLoad } from "../parts/load.ts";
import { gone, readAfter, remove } from "../parts/removal.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { useWords } from "../parts/words.ts";
import type { Fields } from "./fields.ts";

interface Props {
  title: string;
  /** What the list's entries are called, where it is not the title. */
  noun?: string;
  /** Path of the list. */
  path: string;
  /** What follows every path, where the list is somebody's; null: there is nothing to ask for yet. */
  query?: string | null;
  /** Key under which the answer holds the list. */
  key_: string;
  id: (row: Fields) => string;
  name: (row: Fields) => string;
  about: (row: Fields) => string;
  /** Columns of a table, where there is one instead of a card each. */
  table?: { heads: { [title: string]: "" | "number" }; cells: (row: Fields) => ComponentChildren };
  empty: ComponentChildren;
  /** What stands above the list. */
  above?: ComponentChildren;
  tools?: (reload: () => void) => ComponentChildren;
  detail?: (row: Fields) => ComponentChildren;
  /** Grows when the list is to be read again. */
  reads?: number;
  /** What else a search finds. */
  found?: (words: string) => ComponentChildren;
}

export function Records({ title, noun = title.toLowerCase(), path, query = "", key_, id, name, about, table, empty, above, tools, detail, reads = 0, found: others }: Props) {
  const [words, setWords, asked] = useWords();
  const list = useLoad(async () => {
    if (query === null) return [];
    const answer = await readAfter(() => json<{ [key: string]: Fields[] } | Fields[]>(`${path}${query}`));
    return Array.isArray(answer) ? answer : (answer[key_] ?? []);
  }, [path, query, reads]);
  if (list.error instanceof ServerError && list.error.status === 404) {
    return (
      <div class="view records">
        <header class="view-head"><h1>{title}</h1></header>
        <Empty title="Not available on this server"><p>This server does not offer {noun} over HTTP.</p></Empty>
      </div>
    );
  }
  const addressOf = (row: Fields) => `${path}/${encodeURIComponent(id(row))}${query ?? ""}`;
  const removed = async (row: Fields) => (await remove(addressOf(row))) && list.reload();
  return (
    <div class="view records">
      <header class="view-head">
        <h1>{title}</h1>
        <input type="search" placeholder="Search" aria-label={`Search ${title}`} value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        {tools?.(list.reload)}
      </header>
      {above}
      <Shown of={list} what={noun}>
        {(all) => {
          const wanted = words.trim().toLowerCase();
          const found = all.filter((row) => !gone.value.has(addressOf(row)) && (!wanted || `${name(row)} ${about(row)}`.toLowerCase().includes(wanted)));
          if (found.length === 0) return <Empty title={all.length ? "No matches" : `No ${noun} yet`}>{all.length === 0 && empty}</Empty>;
          if (table) {
            return (
              <ListTable label={title} heads={{ ...table.heads, Delete: "hidden" }} class={`${noun}-table`}>
                {found.map((row) => <tr key={id(row)}>{table.cells(row)}<td><button type="button" class="square" aria-label={`Delete ${name(row)}`} title="Delete" onClick={() => void removed(row)}><Icon name="trash" /></button></td></tr>)}
              </ListTable>
            );
          }
          return found.map((row) => (
            <details key={id(row)} class="card">
              <summary>
                <strong>{readable(name(row))}</strong>
                <p>{readable(about(row))}</p>
              </summary>
              {detail ? detail(row) : <JsonView value={row} />}
              <p class="buttons"><button type="button" class="danger" onClick={() => void removed(row)}>Delete</button></p>
            </details>
          ));
        }}
      </Shown>
      {words.trim() && asked && others?.(asked)}
    </div>
  );
}
