/** Health: alerts, threads, queue, workers and failures, and the process's own numbers. */

import { send } from "../api/http.ts";
import { useLoad } from "../parts/load.ts";
import { Rest } from "../parts/rest.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { count } from "../parts/time.tsx";
import { StandingSection } from "./standing.tsx";

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

/** Rows of a card. */
const MOST = 20;

function Bars({ title, rows }: { title: string; rows: [string, number][] }) {
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(([, value]) => value), 1);
  return (
    <section class="card">
      <h3>{title}</h3>
      <table class="bars">
        <tbody>
          {rows.slice(0, MOST).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{readable(agentName(name))}</th>
              <td><meter min={0} max={most} value={value} aria-label={`${name}: ${value}`} /></td>
              <td class="number">{count(Math.round(value * 100) / 100)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Rest shown={MOST} all={rows.length} />
    </section>
  );
}

export function HealthView() {
  const metrics = useLoad(async () => samples(await (await send("metrics")).text()), [], { every: 10_000 });
  return (
    <div class="view">
      <header class="view-head"><h1>Health</h1></header>
      <StandingSection />
      <h2>Since last restart</h2>
      <Shown of={metrics} what="numbers">
        {(all) => {
          if (all.length === 0) return <Empty title="No metrics yet" />;
          return (
            <div class="cards">
              <Bars title="Runs ended" rows={byLabel(all, /^perihelion_runs_ended_total$/, "perihelion_status")} />
              <Bars title="Tokens by role" rows={byLabel(all, /usage_(input|output)_tokens_total$/, "perihelion_role")} />
              <Bars title="Tokens by model" rows={byLabel(all, /usage_(input|output)_tokens_total$/, "gen_ai_response_model")} />
              <Bars title="Cost by role (US dollars)" rows={byLabel(all, /cost.*_total$/, "perihelion_role")} />
              <Bars title="Work by agent" rows={byLabel(all, /^gen_ai_invoke_agent_duration_seconds_count$/, "gen_ai_agent_name")} />
              <Bars title="Tool calls" rows={byLabel(all, /execute_tool.*_count$/, "gen_ai_tool_name")} />
              <Bars title="Reviews of results" rows={byLabel(all, /^perihelion_reflections_total$/, "perihelion_verdict").map(([verdict, number]) => [verdict.toLowerCase(), number])} />
              <Bars title="Questions by kind" rows={byLabel(all, /^perihelion_interrupts_total$/, "perihelion_interrupt_kind")} />
              <Bars title="Errors by kind" rows={byLabel(all.filter((sample) => sample.labels.error_type), /(_count|_total)$/, "error_type")} />
            </div>
          );
        }}
      </Shown>
    </div>
  );
}
