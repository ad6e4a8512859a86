/** All threads and workers at a glance, from the server's own numbers. */

import { send } from "../api/http.ts";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { legible } from "../parts/text.ts";
import { count } from "../parts/time.tsx";

export interface Sample {
  name: string;
  labels: { [label: string]: string };
  value: number;
}

/** Reads the text format of Prometheus. */
export function samples(text: string): Sample[] {
  const found: Sample[] = [];
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!match || line.startsWith("#")) continue;
    const labels: Sample["labels"] = {};
    for (const [, label = "", value = ""] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[label] = value.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
    }
    found.push({ name: match[1] ?? "", labels, value: Number(match[3]) });
  }
  return found;
}

/** Adds samples up by a label, largest first. */
function byLabel(all: Sample[], name: RegExp, label: string): [string, number][] {
  const sums = new Map<string, number>();
  for (const sample of all) {
    const key = sample.labels[label];
    if (name.test(sample.name) && key !== undefined) sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

function Bars({ title, rows }: { title: string; rows: [string, number][] }) {
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(([, value]) => value), 1);
  return (
    <section class="card">
      <h2>{title}</h2>
      <table class="bars">
        <tbody>
          {rows.slice(0, 20).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{legible(name)}</th>
              <td><meter min={0} max={most} value={value} aria-label={`${name}: ${value}`} /></td>
              <td class="number">{count(Math.round(value * 100) / 100)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function FleetView() {
  const metrics = useLoad(async () => samples(await (await send("metrics")).text()), [], 10_000);
  return (
    <div class="fleet">
      <header class="view-head"><h1>Fleet</h1></header>
      <Shown of={metrics} what="numbers">
        {(all) => {
          if (all.length === 0) return <Empty title="No numbers yet" />;
          return (
            <div class="cards">
              <Bars title="Threads by state" rows={byLabel(all, /threads/, "status")} />
              <Bars title="Model tokens by agent" rows={byLabel(all, /token.*(_sum|_total)$/, "agent")} />
              <Bars title="Model tokens by role" rows={byLabel(all, /token.*(_sum|_total)$/, "role")} />
              <Bars title="Cost by agent (US dollars)" rows={byLabel(all, /cost.*(_sum|_total)$/, "agent")} />
              <Bars title="Tool calls by server" rows={byLabel(all, /tool.*(_count|_total)$/, "server")} />
              <Bars title="Errors by kind" rows={byLabel(all.filter((sample) => sample.labels.error_type), /(_count|_total)$/, "error_type")} />
              <Bars title="Servers up" rows={byLabel(all, /server.*up/, "server")} />
            </div>
          );
        }}
      </Shown>
    </div>
  );
}
