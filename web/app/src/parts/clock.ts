/** The server's clock, by which all its times are: this machine's may be wrong. */

/** Milliseconds by which the server's clock is ahead. */
let ahead = 0;

/** Milliseconds below which the clocks agree: the server says its time in whole seconds. */
const AGREED = 2_000;

/** Notes what time an answer of the server has. */
export function keepTime(date: string | null) {
  const difference = date ? new Date(date).getTime() - Date.now() : 0;
  ahead = Math.abs(difference) < AGREED ? 0 : difference;
}

/** Returns the server's time, in milliseconds. */
export const now = () => Date.now() + ahead;
