/** A chart as the server drew it, in the colours of the page: an image, so that nothing in it can act. */

import type { Chart } from "../api/types.ts";
import { isDark } from "../parts/theme.ts";
import { download } from "./export.ts";

/** Colours that the server draws with, and those of the page on a light and on a dark ground. */
const COLOURS: [string, string, string][] = [
  ["#0072b2", "#0068a3", "#5db4ec"],
  ["#e69f00", "#b35c00", "#f0a44c"],
  ["#009e73", "#007a5a", "#3fc79a"],
  ["#cc79a7", "#a8487f", "#dd92bb"],
  ["#d55e00", "#b84a00", "#ff8a5c"],
  ["#dddddd", "#e5e2dc", "#33302c"],
  ["#333333", "#8f8a82", "#7d776e"],
];

const INK = { light: "#1c1a17", dark: "#eeebe6" };
const GROUND = { light: "#ffffff", dark: "#141312" };

/** Draws a picture for a ground; it has none of its own. */
export function onGround(svg: string, dark: boolean): string {
  const theme = dark ? "dark" : "light";
  const clear = svg.replace(/<rect width="\d+" height="\d+" fill="white"\/>/, "").replaceAll('stroke="white"', `stroke="${GROUND[theme]}"`).replace("<svg ", `<svg fill="${INK[theme]}" `);
  return COLOURS.reduce((text, [drawn, light, night]) => text.replaceAll(drawn, dark ? night : light), clear);
}

/** Pixels of a window below which a chart keeps the size of its text and scrolls. */
const NARROW = 640;

export function ChartView({ chart, title }: { chart: Chart; title: string }) {
  if (!chart.svg) return null;
  const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(onGround(chart.svg, isDark.value))}`;
  return <figure class="chart" {...(innerWidth < NARROW && { tabIndex: 0 })}><img src={address} alt={`Chart: ${title}`} /></figure>;
}

/** Saves a chart as the server drew it, or as its specification. */
export function saveChart(chart: Chart, as: "svg" | "vega") {
  if (as === "svg") download("chart.svg", [chart.svg ?? ""], "image/svg+xml");
  else download("chart.vl.json", [JSON.stringify(chart.vega_lite, null, 2)], "application/json");
}
