/** Reads fields of records that the server keeps. */

import type { Json } from "../api/types.ts";

export type Fields = { [key: string]: Json };

export const text = (value: Json | undefined) => (value === null || value === undefined ? "" : String(value));
export const number = (value: Json | undefined) => (typeof value === "number" ? value : 0);
export const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
