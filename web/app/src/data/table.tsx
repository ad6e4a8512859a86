/** A table of data: sorted, filtered, exported; only rows in sight are drawn. */

import { useMemo, useState } from "preact/hooks";
import type { Json, Table } from "../api/types.ts";
import { clip, legible } from "../parts/text.ts";
import { count, plural } from "../parts/time.tsx";
import { VirtualList } from "../parts/virtual.tsx";

function cell(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function compare(a: Json | undefined, b: Json | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  return cell(a).localeCompare(cell(b), undefined, { numeric: true });
}

/** Writes rows as CSV (RFC 4180); what a spreadsheet would take for a formula is quoted as text. */
export function csv(columns: string[], rows: Json[][]): string {
  const field = (value: Json | undefined) => {
    const text = cell(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns.map(field).join(","), ...rows.map((row) => columns.map((_, index) => field(row[index])).join(","))].join("\r\n");
}

export function download(name: string, text: string, type: string) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1_000);
}

export function DataTable({ table, name = "table" }: { table: Table; name?: string }) {
  const [sort, setSort] = useState<{ column: number; up: boolean } | null>(null);
  const [filter, setFilter] = useState("");
  const rows = useMemo(() => {
    const words = filter.toLowerCase();
    const kept = words ? table.rows.filter((row) => row.some((value) => cell(value).toLowerCase().includes(words))) : table.rows;
    if (!sort) return kept;
    return [...kept].sort((a, b) => (sort.up ? 1 : -1) * compare(a[sort.column], b[sort.column]));
  }, [table, filter, sort]);
  const columns = { gridTemplateColumns: `repeat(${table.columns.length}, minmax(6rem, 1fr))` };
  const numeric = useMemo(() => table.columns.map((_, index) => table.rows.slice(0, 50).every((row) => typeof row[index] === "number" || row[index] === null)), [table]);
  return (
    <section class="data-table" aria-label={name}>
      <div class="table-tools">
        <input type="search" placeholder="Filter" aria-label="Filter rows" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span>
          {rows.length === table.rows.length ? plural(rows.length, "row") : `${count(rows.length)} of ${plural(table.rows.length, "row")}`}
          {table.truncated && <strong class="warn"> cut off: the query had more</strong>}
        </span>
        <button type="button" onClick={() => download(`${name}.csv`, csv(table.columns, rows), "text/csv")}>CSV</button>
        <button type="button" onClick={() => download(`${name}.json`, JSON.stringify(rows.map((row) => Object.fromEntries(table.columns.map((column, index) => [column, row[index] ?? null])))), "application/json")}>JSON</button>
      </div>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${name}, scrollable`}>
        <div class="table-head" style={columns}>
          {table.columns.map((column, index) => (
            <button type="button" key={index} class={numeric[index] ? "plain number" : "plain"} aria-label={`Sort by ${column}${sort?.column === index ? (sort.up ? ", now ascending" : ", now descending") : ""}`} onClick={() => setSort(sort?.column === index && !sort.up ? null : { column: index, up: sort?.column !== index })}>
              {legible(column)} {sort?.column === index ? (sort.up ? "▲" : "▼") : ""}
            </button>
          ))}
        </div>
        <VirtualList class="table-body" fit count={rows.length} height={28} label={`Rows of ${name}`} row={(index) => (
          <div class="table-row" style={columns}>
            {table.columns.map((_, column) => {
              const text = legible(cell(rows[index]?.[column]));
              return <span key={column} class={numeric[column] ? "number" : ""} title={text.length > 40 ? text : undefined}>{clip(text, 200)}</span>;
            })}
          </div>
        )} />
      </div>
    </section>
  );
}
