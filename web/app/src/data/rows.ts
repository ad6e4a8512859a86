/** Rows of a table as they are wanted: filtered and sorted, a bit at a time, so that the page answers meanwhile. */

import type { Json } from "../api/types.ts";

export interface Wanted {
  filter: string;
  sort: { column: number; up: boolean } | null;
}

/** Milliseconds of work between which the page answers. */
const SLICE = 8;

/** Rows between two looks at the clock. */
const AT_ONCE = 500;

const words = new Intl.Collator(undefined, { numeric: true });

/** Gives each column a name of its own, so that an object has them all. */
export function named(columns: string[]): string[] {
  const names: string[] = [];
  for (const column of columns) {
    let name = column;
    for (let times = 2; names.includes(name) || (times > 2 && columns.includes(name)); times += 1) name = `${column}_${times}`;
    names.push(name);
  }
  return names;
}

export function cell(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A moment with its zone, as RFC 3339 and databases write it. */
const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/i;

function moment(value: Json): number {
  return typeof value === "string" && MOMENT.test(value) ? Date.parse(value.replace(" ", "T")) : Number.NaN;
}

/** Orders numbers by size, moments by time and before other texts, and all else as words; what is empty comes last. */
function compare(a: Json | undefined, b: Json | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  const [one, other] = [moment(a), moment(b)];
  if (Number.isNaN(one) !== Number.isNaN(other)) return Number.isNaN(one) ? 1 : -1;
  return one - other || words.compare(cell(a), cell(b));
}

/** Filters and sorts, resting after each bit. */
function* arranging(rows: Json[][], { filter, sort }: Wanted): Generator<void, Json[][]> {
  const text = filter.toLowerCase();
  let kept = rows;
  if (text) {
    kept = [];
    for (const [number, row] of rows.entries()) {
      if (row.some((value) => cell(value).toLowerCase().includes(text))) kept.push(row);
      if (number % AT_ONCE === 0) yield;
    }
  }
  if (!sort) return kept;
  const { column, up } = sort;
  const order = (a: Json[], b: Json[]) => (up ? 1 : -1) * compare(a[column], b[column]);
  let runs: Json[][][] = [];
  for (let from = 0; from < kept.length; from += AT_ONCE) {
    runs.push(kept.slice(from, from + AT_ONCE).sort(order));
    yield;
  }
  while (runs.length > 1) {
    const merged: Json[][][] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* merge(runs[at] ?? [], runs[at + 1] ?? [], order));
    runs = merged;
  }
  return runs[0] ?? [];
}

/** Joins two sorted runs; of rows that are alike, those of the first come first. */
function* merge(a: Json[][], b: Json[][], order: (a: Json[], b: Json[]) => number): Generator<void, Json[][]> {
  const joined: Json[][] = [];
  let [left, right] = [0, 0];
  while (left < a.length && right < b.length) {
    const [one, other] = [a[left] as Json[], b[right] as Json[]];
    if (order(one, other) <= 0) joined.push(one), (left += 1);
    else joined.push(other), (right += 1);
    if (joined.length % AT_ONCE === 0) yield;
  }
  for (; left < a.length; left += 1) joined.push(a[left] as Json[]);
  for (; right < b.length; right += 1) joined.push(b[right] as Json[]);
  return joined;
}

/** Does what a generator does, letting the page answer between its bits where it is long. */
export async function gently<T>(work: Generator<void, T>, signal: AbortSignal): Promise<T> {
  let began = performance.now();
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() - began < SLICE) continue;
    await new Promise((next) => setTimeout(next, 0));
    signal.throwIfAborted();
    began = performance.now();
  }
}

export function arrange(rows: Json[][], wanted: Wanted, signal: AbortSignal): Promise<Json[][]> {
  return gently(arranging(rows, wanted), signal);
}

/** Writes a bit of a file for each few rows. */
export function* written(rows: Json[][], one: (row: Json[]) => string): Generator<void, string[]> {
  const parts: string[] = [];
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    parts.push(rows.slice(from, from + AT_ONCE).map(one).join(""));
    yield;
  }
  return parts;
}
