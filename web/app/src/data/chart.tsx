/** A chart as the server drew it: an image, so that nothing in it can act. */

import type { Chart } from "../api/types.ts";
import { download } from "./export.ts";

export function ChartView({ chart, title }: { chart: Chart; title: string }) {
  if (!chart.svg) return null;
  const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(chart.svg)}`;
  return (
    <figure class="chart">
      <img src={address} alt={`Chart: ${title}`} />
      <figcaption>
        <button type="button" class="link" onClick={() => download("chart.svg", [chart.svg ?? ""], "image/svg+xml")}>SVG</button>
        {chart.vega_lite !== undefined && (
          <button type="button" class="link" onClick={() => download("chart.vl.json", [JSON.stringify(chart.vega_lite, null, 2)], "application/json")}>Vega-Lite</button>
        )}
      </figcaption>
    </figure>
  );
}
