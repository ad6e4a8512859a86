/** What model calls took: tokens and cost by day, agent, model and user, of one tenant; and of all tenants, for who runs the service. */

import { useState } from "preact/hooks";
import { ServerError, json } from "../api/http.ts";
import { useLoad } from "../parts/load.ts";
import { dollars } from "../parts/money.ts";
import { Rest } from "../parts/rest.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { count, plural } from "../parts/time.tsx";
import { Limits, type Limit } from "../people/limits.tsx";
import { putQuery, route } from "../router.ts";
import { Days, type Series } from "./days.tsx";
import { cost, tokens, type Spent } from "./spent.ts";

interface Usage extends Parts {
  tenant: string;
  days: number;
  threads: number;
  threads_in_all: number;
  by_day: { [day: string]: Spent };
  parts_by_day: { [day: string]: Parts };
}

type Sums = { [name: string]: Spent };
interface Parts {
  by_agent: Sums;
  by_model: Sums;
  by_user: Sums;
}

/** How the columns are divided. */
const DIVISIONS = { by_agent: "agent", by_model: "model", by_user: "user", kind: "kind of token" } as const;

/** Rows of a card. */
const MOST = 30;

/** Parts of a column that have a color of their own; the rest share the last one. */
const COLORS = 5;

function seriesOf(usage: Usage, by: keyof typeof DIVISIONS): Series[] {
  const sum = (day: string, of: (spent: Spent) => number) => of(usage.by_day[day] ?? { calls: 0, input_tokens: 0, output_tokens: 0 });
  if (by === "kind") return [{ name: "Input tokens", of: (day) => sum(day, (spent) => spent.input_tokens) }, { name: "Output tokens", of: (day) => sum(day, (spent) => spent.output_tokens) }];
  const names = bySize(usage[by]).map(([name]) => name);
  const own = names.slice(0, names.length > COLORS ? COLORS - 1 : COLORS);
  const of = (day: string, some: string[]) => some.reduce((all, name) => all + tokensOf(usage.parts_by_day[day]?.[by][name]), 0);
  const rest = names.slice(own.length);
  return [...own.map((name) => ({ name: readable(agentName(name)), of: (day: string) => of(day, [name]) })), ...(rest.length > 0 ? [{ name: "Others", of: (day: string) => of(day, rest) }] : [])];
}

const tokensOf = (spent: Spent | undefined) => (spent ? tokens(spent) : 0);
const bySize = (parts: Sums) => Object.entries(parts).sort(([, a], [, b]) => tokens(b) - tokens(a));

export function UsageView() {
  return (
    <div class="view">
      <header class="view-head"><h1>Usage</h1></header>
      <UsageSection />
      <Budgets />
      <TenantsSection />
    </div>
  );
}

const budgets = async () => (await json<{ limits: Limit[] }>("v1/auth/me")).limits.filter(({ taken }) => taken !== null);

/** What the tenant used today of what it may. */
function Budgets() {
  const limits = useLoad(budgets, [], { every: 30_000 });
  return <Shown of={limits} what="the budgets">{(all) => <Limits limits={all} title="Budgets" none="No budget is set. Set serve.max_daily_cost_usd or another daily limit in perihelion.toml." />}</Shown>;
}

function UsageSection() {
  const { query } = route.value;
  const days = Number(query.get("days")) || 7;
  const named = query.get("by") ?? "";
  const by = named in DIVISIONS ? (named as keyof typeof DIVISIONS) : "by_agent";
  const usage = useLoad(() => json<Usage>(`v1/fleet/usage?days=${days}`), [days]);
  return (
    <section aria-label="Usage">
      <header class="view-head">
        <h2>Tokens and cost</h2>
        <WindowChoice days={days} of={[1, 7, 30, 90]} choose={(chosen) => putQuery({ days: String(chosen) })} />
        <label class="inline">Columns by <select value={by} onChange={(event) => putQuery({ by: event.currentTarget.value })}>{Object.entries(DIVISIONS).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select></label>
        <button type="button" onClick={usage.reload}>Refresh</button>
      </header>
      <Shown of={usage} what="the usage">
        {(all) => Object.keys(all.by_day).length === 0 ? <Empty title={`No model was called in ${plural(all.days, "day")}`} /> : (
          <>
            <p class="hint small">Tenant {readable(all.tenant)}. Days are in UTC. Read from the newest {plural(all.threads, "thread")}{all.threads_in_all > all.threads && ` of ${count(all.threads_in_all)}`}.</p>
            <Days days={all.by_day} window={all.days} series={seriesOf(all, by)} />
            <div class="cards">
              <SumsCard title="By agent" parts={all.by_agent} />
              <SumsCard title="By model" parts={all.by_model} />
              <SumsCard title="By user" parts={all.by_user} />
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
function TenantsSection() {
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
              <thead><tr><th>Tenant</th><th class="number">Runs</th><th class="number">Tokens</th><th class="number">Cost</th><th class="number">Tool calls</th><th class="number">Steps</th><th class="number">Hours of work</th></tr></thead>
              <tbody>
                {now.tenants.map((one) => (
                  <tr key={one.tenant}>
                    <th scope="row">{readable(one.tenant)}</th>
                    <td class="number">{count(one.runs)}</td>
                    <td class="number">{count(one.tokens)}</td>
                    <td class="number">{one.nano_usd === 0 ? "–" : dollars(one.nano_usd)}</td>
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

function SumsCard({ title, parts }: { title: string; parts: Sums }) {
  const all = bySize(parts);
  return (
    <section class="card">
      <h3>{title}</h3>
      <table class="bars">
        <thead><tr><th>Name</th><th class="number">Calls</th><th class="number">Tokens</th><th class="number">Cost</th></tr></thead>
        <tbody>
          {all.slice(0, MOST).map(([key, spent]) => (
            <tr key={key}>
              <th scope="row">{readable(agentName(key))}</th>
              <td class="number">{count(spent.calls)}</td>
              <td class="number">{count(tokens(spent))}</td>
              <td class="number">{cost(spent)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Rest shown={MOST} all={all.length} />
    </section>
  );
}
