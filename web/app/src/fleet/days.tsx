/** Usage by day as columns: every day of the window, the tokens of its parts one above the other. */

import { useState } from "preact/hooks";
import { count } from "../parts/time.tsx";
import { cost, tokens, type Spent } from "./spent.ts";

const [HEIGHT, LEFT, BOTTOM] = [220, 48, 24];

/** Units across, of which a narrow window has fewer, so that its labels are as large. */
const [WIDE, NARROW] = [1000, 380];

/** Lines across, by which heights are read. */
const LINES = 4;

/** Milliseconds of a day. */
const DAY = 86_400_000;

const NOTHING: Spent = { calls: 0, input_tokens: 0, output_tokens: 0 };

/** A part of each day's tokens. */
export interface Series {
  name: string;
  of: (day: string) => number;
}

const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const dayName = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });

/** Returns the days of a window up to today, oldest first. */
function daysOf(window: number): string[] {
  return Array.from({ length: window }, (_, index) => new Date(Date.now() - (window - 1 - index) * DAY).toISOString().slice(0, 10));
}

/** Returns a round number that is no less. */
function roundUp(most: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return Math.ceil(most / unit) * unit;
}

/** Says what a day took; without a price, tokens alone. */
const words = (spent: Spent) => [`${count(tokens(spent))} tokens`, cost(spent)].filter((part) => part !== "–").join(", ");

export function Days({ days, window, series }: { days: { [day: string]: Spent }; window: number; series: Series[] }) {
  const [at, setAt] = useState<string | null>(null);
  const width = innerWidth < 640 ? NARROW : WIDE;
  const all = [...new Set([...daysOf(window), ...Object.keys(days)])].sort().slice(-Math.max(window, 1));
  const of = (day: string) => days[day] ?? NOTHING;
  const top = roundUp(Math.max(...all.map((day) => tokens(of(day))), 1));
  const step = (width - LEFT) / all.length;
  const high = (value: number) => (value / top) * (HEIGHT - BOTTOM - 8);
  const base = HEIGHT - BOTTOM;
  const every = Math.ceil((all.length * 90) / width);
  const shown = at ?? all.at(-1) ?? "";
  return (
    <figure class="card">
      <svg class="usage-chart" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={`Tokens by day, ${all.length} days, at most ${count(Math.max(...all.map((day) => tokens(of(day)))))} a day`} onMouseLeave={() => setAt(null)}>
        {Array.from({ length: LINES + 1 }, (_, index) => (
          <g key={index}>
            <line class="grid" x1={LEFT} x2={width} y1={base - high((top * index) / LINES)} y2={base - high((top * index) / LINES)} />
            <text x={LEFT - 8} y={base - high((top * index) / LINES) + 4} text-anchor="end">{short.format((top * index) / LINES)}</text>
          </g>
        ))}
        {all.map((day, index) => {
          const parts = series.map((part) => part.of(day));
          const x = LEFT + index * step;
          const wide = Math.min(step * 0.7, 48);
          return (
            <g key={day} onMouseEnter={() => setAt(day)}>
              <rect x={x} y="0" width={step} height={base} fill="transparent" />
              {parts.map((part, at) => <rect key={at} class={`part-${at + 1}`} x={x + (step - wide) / 2} width={wide} y={base - high(parts.slice(0, at + 1).reduce((sum, one) => sum + one, 0))} height={high(part)} />)}
              {index % every === 0 && <text x={x + step / 2} y={HEIGHT - 6} text-anchor="middle">{dayName.format(new Date(day))}</text>}
            </g>
          );
        })}
      </svg>
      <figcaption>
        <ul class="legend" aria-hidden="true">{series.map(({ name }, index) => <li key={name}><i class={`part-${index + 1}`} />{name}</li>)}<li class="legend-day">{shown && dayName.format(new Date(shown))}: {words(of(shown))}</li></ul>
        <details>
          <summary class="hint small">By day</summary>
          <ol class="plain-list" aria-label="By day">{all.filter((day) => tokens(of(day)) > 0).map((day) => <li key={day}>{day}: {words(of(day))}</li>)}</ol>
        </details>
      </figcaption>
    </figure>
  );
}
