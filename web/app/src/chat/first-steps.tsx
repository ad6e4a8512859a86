/** What a new installation still needs, for its operators: each step tests itself. */

import { json } from "../api/http.ts";
import { models } from "../api/models.ts";
import { threads } from "../api/threads.ts";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { readable } from "../parts/text.ts";
import { link } from "../router.ts";
import { ModelWords } from "./demo.tsx";

interface Props {
  servers: number;
  problems: { server: string; problem: string }[];
  onCheck: () => void;
}

/** Tests what no thread has shown yet; null for those who do not operate the service. */
async function test() {
  const { scopes } = await json<{ scopes: string[] }>("v1/auth/me");
  if (!scopes.includes("operate")) return null;
  const isAnswered = (await threads.search({ status: "idle" })).length > 0;
  const model = isAnswered ? { answers: true, problem: null } : await models.check();
  return { isAnswered, model, local: model.answers ? [] : await models.local() };
}

export function FirstSteps({ servers, problems, onCheck }: Props) {
  const tested = useLoad(test, []);
  if (!tested.data) return null;
  const { isAnswered, model, local } = tested.data;
  const [problem] = problems;
  const steps = [
    { title: "A server is connected", isDone: servers > 0, about: problem ? <>{readable(problem.server)}: {readable(problem.problem)} <a href={link("agents")}>Show servers</a></> : <><code>perihelion init</code> writes a first <code>mcp-servers.toml</code>.</> },
    { title: "The model answers", isDone: model.answers, about: <>{readable(model.problem ?? "")}. <ModelWords local={local} /></> },
    { title: "The first question is answered", isDone: isAnswered, about: <>Ask one above.</> },
  ];
  if (steps.every((step) => step.isDone)) return null;
  return (
    <section class="card first-steps" aria-label="First steps">
      <p class="values-head"><strong>First steps</strong> <button type="button" class="link small" disabled={tested.loading} onClick={() => (onCheck(), tested.reload())}>{tested.loading ? "Checking…" : "Check again"}</button></p>
      <ul class="checklist">
        {steps.map((step) => (
          <li key={step.title}>
            <span class={step.isDone ? "mark good" : "mark"} role="img" aria-label={step.isDone ? "done" : "not done"}><Icon name={step.isDone ? "check" : "circle"} /></span>
            <div class="item"><p class="item-title">{step.title}</p>{!step.isDone && <p class="hint small">{step.about}</p>}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}
