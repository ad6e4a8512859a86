/** A table of data: sorted, filtered, exported; only rows in sight are drawn. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Table } from "../api/types.ts";
import { attempt } from "../parts/notice.tsx";
import { clip, readable } from "../parts/text.ts";
import { count, plural } from "../parts/time.tsx";
import { VirtualList } from "../parts/virtual.tsx";
import { saveCsv, saveJson } from "./export.ts";
import { arrange, cell, type Wanted } from "./rows.ts";

const ALL: Wanted = { filter: "", sort: null };

/** Returns the rows as they are wanted; until these are there, as they were wanted before. */
function useArranged(table: Table, wanted: Wanted) {
  const [arranged, setArranged] = useState({ of: table, rows: table.rows, by: ALL });
  useEffect(() => {
    const changed = new AbortController();
    arrange(table.rows, wanted, changed.signal).then(
      (rows) => !changed.signal.aborted && setArranged({ of: table, rows, by: wanted }),
      () => {},
    );
    return () => changed.abort();
  }, [table, wanted]);
  return arranged.of === table ? arranged : { of: table, rows: table.rows, by: ALL };
}

/** Characters that a column may have at most and at least. */
const [WIDEST, NARROWEST] = [48, 8];

function width(column: string, rows: Table["rows"], index: number): number {
  const longest = rows.slice(0, 100).reduce((most, row) => Math.max(most, cell(row[index]).length), column.length + 3);
  return Math.min(Math.max(longest + 3, NARROWEST), WIDEST);
}

export function DataTable({ table, name = "table" }: { table: Table; name?: string }) {
  const [wanted, setWanted] = useState(ALL);
  const { rows, by: { sort } } = useArranged(table, wanted);
  // As wide as the longest of the first rows, so that related cells stand near each other.
  const columns = useMemo(() => ({ gridTemplateColumns: table.columns.map((column, index) => `${width(column, table.rows, index)}ch`).join(" ") }), [table]);
  const numeric = useMemo(() => table.columns.map((_, index) => table.rows.slice(0, 50).every((row) => typeof row[index] === "number" || row[index] === null)), [table]);
  function sortBy(column: number) {
    const before = wanted.sort;
    const isDescending = before?.column === column && !before.up;
    setWanted({ ...wanted, sort: isDescending ? null : { column, up: before?.column !== column } });
  }
  return (
    <section class="data-table" aria-label={name}>
      <div class="table-tools">
        <input type="search" placeholder="Filter" aria-label="Filter rows" value={wanted.filter} onInput={(event) => setWanted({ ...wanted, filter: event.currentTarget.value })} />
        <span>
          {rows.length === table.rows.length ? plural(rows.length, "row") : `${count(rows.length)} of ${plural(table.rows.length, "row")}`}
          {table.truncated && <strong class="warn"> truncated: the query had more rows</strong>}
        </span>
        <button type="button" onClick={() => void attempt(() => saveCsv(name, table.columns, rows))}>CSV</button>
        <button type="button" onClick={() => void attempt(() => saveJson(name, table.columns, rows))}>JSON</button>
      </div>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${name}, scrollable`}>
        <div role="table" aria-label={name} aria-rowcount={rows.length + 1} aria-colcount={table.columns.length}>
          <div role="rowgroup">
            <div class="table-head" role="row" aria-rowindex={1} style={columns}>
              {table.columns.map((column, index) => (
                <div role="columnheader" key={index} aria-sort={sort?.column !== index ? "none" : sort.up ? "ascending" : "descending"}>
                  <button type="button" class={numeric[index] ? "plain number" : "plain"} aria-label={`Sort by ${column}${sort?.column === index ? (sort.up ? ", now ascending" : ", now descending") : ""}`} onClick={() => sortBy(index)}>
                    {readable(column)} {sort?.column === index ? (sort.up ? "▲" : "▼") : ""}
                  </button>
                </div>
              ))}
            </div>
          </div>
          <VirtualList class="table-body" isTable fit count={rows.length} height={28} label={`Rows of ${name}`} row={(index) => (
            <div class="table-row" role="row" aria-rowindex={index + 2} style={columns}>
              {table.columns.map((_, column) => {
                const text = readable(cell(rows[index]?.[column]));
                return <span key={column} role="cell" class={numeric[column] ? "number" : ""} title={text.length > 40 ? text : undefined}>{clip(text, 200)}</span>;
              })}
            </div>
          )} />
        </div>
      </div>
    </section>
  );
}
