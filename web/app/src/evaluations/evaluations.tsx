/** Evaluations of models on data sets and suites: figures with their intervals, beside each other, and case by case. */

import { useState } from "preact/hooks";
import { evaluations, type Estimate, type Evaluation, type Figures, type Item } from "../api/evaluations.ts";
import { saveDataSet } from "../data/export.ts";
import { confirmed } from "../parts/confirm.tsx";
import { Icon } from "../parts/icon.tsx";
import { ListTable } from "../parts/list-table.tsx";
import { useLoad } from "../parts/load.ts";
import { dollars } from "../parts/money.ts";
import { attempt } from "../parts/notice.tsx";
import { Newest } from "../parts/rest.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { Time, count, duration } from "../parts/time.tsx";
import { link } from "../router.ts";
import { Cases } from "./cases.tsx";

/** Evaluations that are listed. */
const MOST = 100;

export function EvaluationsView({ query }: { query: URLSearchParams }) {
  const chosen = query.getAll("id");
  const list = useLoad(() => evaluations.list(MOST), []);
  const [saving, setSaving] = useState(false);
  /** Keeps the choice in the address. */
  function choose(key: string, isChosen: boolean) {
    const next = new URLSearchParams([...chosen.filter((one) => one !== key), ...(isChosen ? [key] : [])].map((one) => ["id", one]));
    location.hash = `${link("evaluations")}${next.size ? `?${next}` : ""}`;
  }
  async function save() {
    setSaving(true);
    await attempt(() => saveDataSet());
    setSaving(false);
  }
  async function remove({ key, value }: Item<Evaluation>) {
    if (!(await confirmed(`Delete the evaluation of ${readable(value.suite)}?`, "Delete", "Its threads stay."))) return;
    if (await attempt(() => evaluations.remove(key))) {
      choose(key, false);
      list.reload();
    }
  }
  return (
    <div class="view">
      <header class="view-head">
        <h1>Evaluations</h1>
        <a class="button" href={`${link("threads")}?evaluations=shown`}><Icon name="message" /> Threads</a>
        <button type="button" disabled={saving} onClick={() => void save()}><Icon name="download" /> Data set from rated answers</button>
      </header>
      <Shown of={list} what="evaluations">
        {(all) => all.length === 0 ? (
          <Empty title="No evaluations yet">
            <p>Rate answers with a thumb, download them as a data set, and compare models on it:</p>
            <pre>perihelion eval data.jsonl --model small --model large --judge large</pre>
          </Empty>
        ) : (
          <>
            <List all={all} chosen={chosen} choose={choose} remove={remove} />
            <Newest shown={all.length} most={MOST} />
            <Chosen items={chosen.length > 0 ? all.filter(({ key }) => chosen.includes(key)) : all.slice(0, 1)} />
          </>
        )}
      </Shown>
    </div>
  );
}

interface ListProps {
  all: Item<Evaluation>[];
  chosen: string[];
  choose: (key: string, isChosen: boolean) => void;
  remove: (item: Item<Evaluation>) => Promise<void>;
}

function List({ all, chosen, choose, remove }: ListProps) {
  return (
    <ListTable label="Evaluations" heads={{ Compare: "hidden", Suite: "", Models: "", Role: "", Judge: "", Started: "", Delete: "hidden" }}>
      {all.map((item) => (
        <tr key={item.key}>
          <td><input type="checkbox" aria-label={`Compare ${item.value.suite}`} checked={chosen.includes(item.key)} onChange={(event) => choose(item.key, event.currentTarget.checked)} /></td>
          <td class="main">{readable(item.value.suite)}</td>
          <td>{item.value.models.map(({ model }) => readable(model)).join(", ")}</td>
          <td>{item.value.role ?? "all"}</td>
          <td>{readable(item.value.judge ?? "–")}</td>
          <td><Time of={item.created_at} /></td>
          <td><button type="button" class="square" aria-label={`Delete ${item.value.suite}`} onClick={() => void remove(item)}><Icon name="trash" /></button></td>
        </tr>
      ))}
    </ListTable>
  );
}

/** The models of the chosen evaluations, one beside another. */
function Chosen({ items }: { items: Item<Evaluation>[] }) {
  const several = items.length > 1;
  return (
    <>
      <h2>{several ? `${items.length} evaluations` : readable(items[0]?.value.suite ?? "")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Figures">
        <table class="bars">
          <thead><tr><th>Model</th><th>Passed</th><th class="number">Cost of a run</th><th class="number">Tokens</th><th class="number">Calls</th><th class="number">Repairs</th><th class="number">Median call</th><th class="number">95 % of calls</th><th>Judged beside the first</th><th class="number">Judge</th></tr></thead>
          <tbody>
            {items.flatMap((item) => item.value.models.map((one) => <Row key={`${item.key} ${one.model}`} one={one} of={several ? item.value.suite : ""} />))}
          </tbody>
        </table>
      </div>
      <p class="hint small">Intervals of 95 %. Calls, repairs and latency are for the evaluated role only.</p>
      <Cases key={items.map(({ key }) => key).join(" ")} items={items} />
    </>
  );
}

const percent = ({ mean, low, high }: Estimate) => `${Math.round(mean * 100)} % (${Math.round(low * 100)} to ${Math.round(high * 100)})`;

function Row({ one, of }: { one: Figures; of: string }) {
  const { beside_first: beside, judging } = one;
  return (
    <tr>
      <th scope="row">{readable(one.model)}{of && <span class="hint small"> {readable(of)}</span>}</th>
      <td class="num"><meter min={0} max={1} value={one.passed.mean} aria-hidden="true" /> {percent(one.passed)}</td>
      <td class="number">{one.cost_usd.mean === 0 ? "–" : <span title={`${dollars(one.cost_usd.low * 1e9)} to ${dollars(one.cost_usd.high * 1e9)}`}>{dollars(one.cost_usd.mean * 1e9)}</span>}</td>
      <td class="number">{count(Math.round(one.tokens.mean))}</td>
      <td class="number">{count(one.calls)}</td>
      <td class="number">{count(one.repairs)}</td>
      <td class="number">{duration(one.latency_p50_ms)}</td>
      <td class="number">{duration(one.latency_p95_ms)}</td>
      <td>{beside ? `${beside.won} won, ${beside.tied} tied, ${beside.lost} lost: ${percent(beside.score)}` : "–"}</td>
      <td class="number">{judging?.calls ? <span title={`${count(judging.calls)} calls`}>{judging.cost_usd > 0 ? dollars(judging.cost_usd * 1e9) : `${count(judging.tokens)} tokens`}</span> : "–"}</td>
    </tr>
  );
}
