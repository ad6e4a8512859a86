/** What model calls took: tokens and cost by day, agent and model, of one tenant; and of all tenants, for who runs the service. */

import { useState } from "preact/hooks";
import { ServerError, json } from "../api/http.ts";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { count, plural } from "../parts/time.tsx";

interface Spent {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  nano_usd?: number;
  unpriced?: number;
}

interface Usage {
  tenant: string;
  days: number;
  threads: number;
  threads_in_all: number;
  by_day: { [day: string]: Spent };
  by_agent: { [agent: string]: Spent };
  by_model: { [model: string]: Spent };
}

export function UsageSection() {
  const [days, setDays] = useState(7);
  const usage = useLoad(() => json<Usage>(`v1/fleet/usage?days=${days}`), [days]);
  return (
    <section aria-label="Usage">
      <header class="view-head">
        <h2>Tokens and cost</h2>
        <WindowChoice days={days} of={[1, 7, 30, 90]} choose={setDays} />
        <button type="button" onClick={usage.reload}>Refresh</button>
      </header>
      <Shown of={usage} what="the usage">
        {(all) => Object.keys(all.by_day).length === 0 ? <Empty title={`No model was called in ${plural(all.days, "day")}`} /> : (
          <>
            <p class="hint">Tenant {readable(all.tenant)}; days of UTC, as limits count them; from the journals of the newest {plural(all.threads, "thread")}{all.threads_in_all > all.threads && ` of ${count(all.threads_in_all)}`}.</p>
            <Days days={all.by_day} />
            <div class="cards">
              <Parts title="By agent" parts={all.by_agent} name={agentName} />
              <Parts title="By model" parts={all.by_model} />
            </div>
          </>
        )}
      </Shown>
    </section>
  );
}

interface Tenants {
  days: number;
  tenants: { tenant: string; runs: number; tokens: number; nano_usd: number; tool_calls: number; steps: number; work_ms: number }[];
}

/** What every tenant took; nothing for who sees their own alone. */
export function TenantsSection() {
  const [days, setDays] = useState(7);
  const all = useLoad(() => json<Tenants>(`v1/fleet/tenants?days=${days}`), [days]);
  if (all.error instanceof ServerError && all.error.status === 403) return null;
  return (
    <section aria-label="Tenants">
      <header class="view-head">
        <h2>By tenant</h2>
        <WindowChoice days={days} of={[1, 7, 30]} choose={setDays} />
      </header>
      <Shown of={all} what="the usage of tenants">
        {(now) => now.tenants.length === 0 ? <Empty title={`No run ended in ${plural(now.days, "day")}`} /> : (
          <div class="scroll" tabIndex={0} role="region" aria-label="Usage by tenant, scrollable">
            <table class="bars">
              <thead><tr><th>Tenant</th><th>Runs</th><th>Tokens</th><th>Cost</th><th>Tool calls</th><th>Steps</th><th>Hours of work</th></tr></thead>
              <tbody>
                {now.tenants.map((one) => (
                  <tr key={one.tenant}>
                    <th scope="row">{readable(one.tenant)}</th>
                    <td class="number">{count(one.runs)}</td>
                    <td class="number">{count(one.tokens)}</td>
                    <td class="number">{one.nano_usd === 0 ? "no price" : `$${(one.nano_usd / 1e9).toFixed(2)}`}</td>
                    <td class="number">{count(one.tool_calls)}</td>
                    <td class="number">{count(one.steps)}</td>
                    <td class="number">{(one.work_ms / 3.6e6).toFixed(2)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Shown>
    </section>
  );
}

function WindowChoice({ days, of, choose }: { days: number; of: number[]; choose: (days: number) => void }) {
  return <label class="inline">Days <select value={days} onChange={(event) => choose(Number(event.currentTarget.value))}>{of.map((window) => <option key={window}>{window}</option>)}</select></label>;
}

const tokens = (spent: Spent) => spent.input_tokens + spent.output_tokens;

function cost(spent: Spent): string {
  if (spent.nano_usd === undefined) return "no price";
  return `$${(spent.nano_usd / 1e9).toFixed(spent.nano_usd < 1e7 ? 4 : 2)}${spent.unpriced ? " and more" : ""}`;
}

/** A column for each day. */
function Days({ days }: { days: Usage["by_day"] }) {
  const all = Object.entries(days);
  const most = Math.max(...all.map(([, spent]) => tokens(spent)), 1);
  return (
    <ol class="days" aria-label="By day" tabIndex={0}>
      {all.map(([day, spent]) => (
        <li key={day} title={`${day}: ${count(tokens(spent))} tokens, ${cost(spent)}`}>
          <svg viewBox="0 0 10 60" preserveAspectRatio="none" aria-hidden="true"><rect x="0" width="10" y={60 - (tokens(spent) / most) * 60} height={(tokens(spent) / most) * 60} /></svg>
          <span>{day.slice(5)}</span>
          <span class="hint">{count(tokens(spent))}</span>
        </li>
      ))}
    </ol>
  );
}

function Parts({ title, parts, name = (text) => text }: { title: string; parts: { [name: string]: Spent }; name?: (text: string) => string }) {
  const all = Object.entries(parts).sort(([, a], [, b]) => tokens(b) - tokens(a));
  return (
    <section class="card">
      <h3>{title}</h3>
      <table class="bars">
        <thead><tr><th>Name</th><th>Calls</th><th>Tokens</th><th>Cost</th></tr></thead>
        <tbody>
          {all.slice(0, 30).map(([key, spent]) => (
            <tr key={key}>
              <th scope="row">{readable(name(key))}</th>
              <td class="number">{count(spent.calls)}</td>
              <td class="number">{count(tokens(spent))}</td>
              <td class="number">{cost(spent)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
