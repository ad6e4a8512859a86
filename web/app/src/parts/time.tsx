/** Times in the reader's zone, and durations. */

import { now } from "./clock.ts";

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const earlier = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

/** Writes a day, with the year where it is another one. */
export const dayText = (date: Date) => (date.getFullYear() === new Date().getFullYear() ? day : earlier).format(date);

/** Shows a time: the clock today, the day before, all of it as a tooltip. */
export function Time({ of }: { of: string | null | undefined }) {
  const date = of ? new Date(of) : null;
  if (!date || Number.isNaN(date.getTime())) return null;
  const short = date.toDateString() === new Date().toDateString() ? clock.format(date) : dayText(date);
  return (
    <time dateTime={date.toISOString()} title={full.format(date)}>
      {short}
    </time>
  );
}

/** Writes a moment with its day. */
export function moment(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : full.format(date);
}

/** Says how long it is until a moment, in its largest unit. */
export function until(text: string): string {
  const minutes = Math.max(0, Math.round((new Date(text).getTime() - now()) / 60_000));
  if (minutes < 60) return plural(minutes, "minute");
  return minutes < 48 * 60 ? plural(Math.round(minutes / 60), "hour") : plural(Math.round(minutes / 1_440), "day");
}

/** Writes milliseconds as people read them. */
export function duration(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const numbers = new Intl.NumberFormat();

/** Writes a number with separators. */
export function count(number: number): string {
  return numbers.format(number);
}

/** Writes a number with its noun. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
