/** JSON with whole numbers that a browser would round, such as the ids of a table. */

/** A whole number of so many digits that it may be rounded. */
const LONG = /[:,[]\s*-?(9\d{15}|\d{17})/;

/** Reads JSON; numbers that would be rounded become texts, where the browser tells how they are written. Not for what is sent back. */
export function readExact<T>(text: string): T {
  const exact = (_: string, value: unknown, written?: { source?: string }) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(written?.source ?? "") ? written?.source : value;
  return (LONG.test(text) ? JSON.parse(text, exact) : JSON.parse(text)) as T;
}
