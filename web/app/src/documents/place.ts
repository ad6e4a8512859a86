/** Places in documents: their addresses in the page, and how results name them. */

import { link } from "../router.ts";

/** Returns the address of a document, at the characters from `start` to `end`. */
export function placed(id: string, start?: number, end?: number): string {
  const place = start === undefined ? "" : `?start=${start}&end=${end ?? start}`;
  return `${link("documents", id)}${place}`;
}

/** The title under which a document is looked for whose id a result does not give. */
export const BY_TITLE = "titled";

/** Returns the address of what a result's reference names: a title, its section, `characters 10–20`; none for other things. */
export function referenced(reference: string | undefined): string | null {
  const match = /^(.*), characters (\d+)–(\d+)$/s.exec(reference ?? "");
  if (!match) return null;
  const [, named = "", start = "", end = ""] = match;
  return `${link("documents", BY_TITLE)}?${new URLSearchParams({ reference: named, start, end })}`;
}

/** Cuts text at places in characters, which are not those of JavaScript for what is beyond the basic plane. */
export function cut(text: string, from: number, to: number): [string, string, string] {
  const characters = [...text];
  const [start, end] = [Math.max(0, from), Math.max(0, to)];
  return [characters.slice(0, start).join(""), characters.slice(start, end).join(""), characters.slice(end).join("")];
}
