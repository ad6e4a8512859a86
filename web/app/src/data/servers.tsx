/** Agents and their servers: how they stand, their tools and the rules around these. */

import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { Status } from "../parts/status.tsx";
import { agentName, readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { agents } from "./agents.ts";
import { Pin } from "./pin.tsx";

export function ServersView() {
  const list = useLoad(agents.list, [], { every: 15_000 });
  return (
    <div class="view">
      <header class="view-head">
        <h1>Agents</h1>
        <p class="hint small">Changes to the servers file apply when you save it.</p>
      </header>
      <Shown of={list} what="agents">
        {({ agents: all, problems }) => (
          <>
            {problems.map((problem) => (
              <section key={`${problem.server} ${problem.problem}`} class="failure" aria-label={`Problem of ${problem.server}`}>
                <p><strong>{readable(problem.server)}</strong>: {readable(problem.problem)}</p>
                <Pin server={problem.server} onApproved={list.reload} />
              </section>
            ))}
            {all.length === 0 && <Empty title="No agents yet"><p><code>perihelion init</code> writes a first <code>mcp-servers.toml</code>.</p></Empty>}
            {all.map((agent) => (
              <details key={agent.name} class="card">
                <summary>
                  <Status of={agent.problem ? "failed" : agent.status === "running" ? "done" : "open"} words={agent.problem ? "has a problem" : (agent.status ?? "unknown")} /> <strong>{agentName(agent.name)}</strong> <span class="hint">{[agent.kind, plural(agent.tools.length, "tool"), agent.status].filter(Boolean).join(" · ")}</span>
                  <p>{readable(agent.description)}</p>
                </summary>
                {agent.problem && <p class="error-text">{readable(agent.problem)}</p>}
                {agent.open_world && <p class="warn">Output from this server is untrusted.</p>}
                <table class="wide">
                  <thead><tr><th>Tool</th><th>Description</th><th>Rules</th></tr></thead>
                  <tbody>
                    {agent.tools.map((tool) => (
                      <tr key={tool.name}>
                        <th scope="row"><code>{readable(tool.name)}</code></th>
                        <td>{readable(tool.description ?? "")}</td>
                        <td>{[tool.read_only && "read only", tool.needs_approval && "needs approval"].filter(Boolean).join(", ")}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
                <Pin server={agent.server} onApproved={list.reload} />
              </details>
            ))}
          </>
        )}
      </Shown>
    </div>
  );
}
