/** JSON that a person wrote, which is sent as it was written or not at all. */

import type { Json } from "../api/types.ts";

/** Tells whether a browser reads all numbers without rounding them. */
export function isEveryNumberExact(value: Json): boolean {
  if (typeof value === "number") return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return typeof value !== "object" || value === null || Object.values(value).every((one) => isEveryNumberExact(one as Json));
}

/** Refuses a value with a number that was rounded. */
export const exact = (value: Json): { value: Json } | { problem: string } =>
  isEveryNumberExact(value) ? { value } : { problem: "A number here has more digits than a browser can send." };

export function parseEdited(text: string): { value: Json } | { problem: string } {
  try {
    return exact(JSON.parse(text) as Json);
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}
