/** The cases of evaluations: a row for each, a column for each model, and the threads behind them. */

import { useState } from "preact/hooks";
import { evaluations, type CaseRun, type Evaluation, type Item } from "../api/evaluations.ts";
import { useLoad } from "../parts/load.ts";
import { Rest } from "../parts/rest.tsx";
import { Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { duration, plural } from "../parts/time.tsx";
import { link } from "../router.ts";

/** Cases that are shown. */
const MOST = 200;

interface Column {
  title: string;
  runs: Map<string, CaseRun[]>;
}

async function columns(items: Item<Evaluation>[]): Promise<Column[]> {
  const all = await Promise.all(items.map(({ key }) => evaluations.records(key)));
  const of = (index: number) => (items.length > 1 ? ` (${items[index]?.value.suite ?? ""})` : "");
  return all.flatMap((records, index) => records.map((record) => ({ title: `${record.model}${of(index)}`, runs: new Map(record.cases.map(({ name, runs }) => [name, runs])) })));
}

export function Cases({ items }: { items: Item<Evaluation>[] }) {
  const loaded = useLoad(() => columns(items), []);
  const [isDiffering, setDiffering] = useState(false);
  return (
    <Shown of={loaded} what="the cases">
      {(all) => {
        const names = [...new Set(all.flatMap(({ runs }) => [...runs.keys()]))];
        const shares = (name: string) => new Set(all.map(({ runs }) => share(runs.get(name) ?? [])));
        const shown = names.filter((name) => !isDiffering || shares(name).size > 1);
        return (
          <>
            <div class="filters"><label class="inline"><input type="checkbox" checked={isDiffering} onChange={(event) => setDiffering(event.currentTarget.checked)} /> Only cases with different results</label> <span class="hint">{plural(shown.length, "case")}</span></div>
            <div class="scroll" tabIndex={0} role="region" aria-label="Cases">
              <table class="list-table">
                <thead><tr><th>Case</th>{all.map(({ title }, index) => <th key={index}>{readable(title)}</th>)}{all.length > 1 && <th>Threads</th>}</tr></thead>
                <tbody>{shown.slice(0, MOST).map((name) => <Case key={name} name={name} sides={all.map(({ runs }) => runs.get(name) ?? [])} />)}</tbody>
              </table>
            </div>
            <Rest shown={MOST} all={shown.length} />
          </>
        );
      }}
    </Shown>
  );
}

/** Shortens the name of a case that was made of a thread's turn. */
const caseName = (name: string) => name.replace(/^([0-9a-f]{8})-[0-9a-f-]{27} (\d+)$/, "Thread $1, turn $2");

const share = (runs: CaseRun[]) => runs.filter(({ passed }) => passed).length / Math.max(1, runs.length);

function Case({ name, sides }: { name: string; sides: CaseRun[][] }) {
  const [first, other] = sides.map(([run]) => run);
  return (
    <tr>
      <td class="main" title={readable(name)}>{readable(caseName(name))}</td>
      {sides.map((runs, index) => (
        <td key={index}>
          {runs.map((run) => (
            <span key={run.thread_id} class="num"><a href={link("chat", run.thread_id)} title={run.findings.map(readable).join("\n")}>{run.passed ? "passed" : "failed"}</a> <span class="hint small">{duration(run.seconds * 1000)}</span> </span>
          ))}
        </td>
      ))}
      {sides.length > 1 && <td>{first && other && <a href={`${link("compare", first.thread_id)}?with=${other.thread_id}`}>Compare</a>}</td>}
    </tr>
  );
}
