/** Places in documents: their addresses in the page, and how sources name them. */

import type { Source } from "../api/types.ts";
import { link } from "../router.ts";

/** Returns the address of a document, at the characters from `start` to `end`. */
export function placed(id: string, start?: number, end?: number): string {
  const place = start === undefined ? "" : `?start=${start}&end=${end ?? start}`;
  return `${link("documents", id)}${place}`;
}

/** Returns the address of the place in a document that a source names; none for other things. */
export function referenced({ document, start, end }: Source): string | null {
  return typeof document === "string" && typeof start === "number" && typeof end === "number" ? placed(document, start, end) : null;
}

/** Cuts text at places in characters, which are not those of JavaScript for what is beyond the basic plane. */
export function cut(text: string, from: number, to: number): [string, string, string] {
  const characters = [...text];
  const [start, end] = [Math.max(0, from), Math.max(0, to)];
  return [characters.slice(0, start).join(""), characters.slice(start, end).join(""), characters.slice(end).join("")];
}
