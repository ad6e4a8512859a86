/** Agents and their servers: how they stand, what they did last, their tools and the rules around these. */

import { useState } from "preact/hooks";
import { findRuns, type FoundRun } from "../api/runs.ts";
import { EMPTY, keepDraft, readDraft } from "../chat/draft.ts";
import { Icon } from "../parts/icon.tsx";
import { CopyCommand } from "../parts/copy.tsx";
import { ListTable } from "../parts/list-table.tsx";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { Status } from "../parts/status.tsx";
import { agentName, readable } from "../parts/text.ts";
import { Time, count } from "../parts/time.tsx";
import { go, link } from "../router.ts";
import { agents, type AgentInfo, type Tool } from "./agents.ts";
import { Pin } from "./pin.tsx";
import { ToolCall } from "./tool-call.tsx";

const HEADS = { Agent: "", Kind: "", Status: "", Tools: "number", "Last used": "", Problem: "" } as const;

/** Runs among which the last one of an agent is looked for. */
const NEWEST = "200";

/** Returns the newest run of each agent. */
async function lastRuns(): Promise<Map<string, FoundRun>> {
  const { runs } = await findRuns(new URLSearchParams({ limit: NEWEST }));
  return new Map(runs.toReversed().flatMap((run) => run.agents.map((agent) => [agent, run] as const)));
}

export function ServersView({ agent }: { agent: string | undefined }) {
  const list = useLoad(agents.list, [], { every: 15_000 });
  const last = useLoad(lastRuns, [], { every: 15_000 });
  return (
    <div class="view">
      {agent && <p><a href={link("agents")}>← Agents</a></p>}
      {!agent && <header class="view-head"><h1>Agents</h1></header>}
      <Shown of={list} what="agents">
        {({ agents: all, problems }) => {
          const opened = all.find(({ name }) => name === agent);
          if (opened) return <AgentView agent={opened} onChange={list.reload} />;
          if (agent) return <Empty title="Agent not found"><p>Its server was removed from the servers file or cannot start.</p></Empty>;
          return (
            <>
              {problems.map((problem) => (
                <section key={`${problem.server} ${problem.problem}`} class="failure" aria-label={`Problem of ${problem.server}`}>
                  <p><strong>{readable(problem.server)}</strong>: {readable(problem.problem)}</p>
                  <Pin server={problem.server} onApproved={list.reload} />
                </section>
              ))}
              {all.length === 0 ? <Empty title="No agents yet"><p>Each MCP server in <code>mcp-servers.toml</code> is an agent; a command writes the first one.</p><p class="buttons"><CopyCommand command="perihelion init" /></p></Empty> : (
                <>
                  <ListTable label="Agents" heads={HEADS} class="agents-table">{all.map((one) => <Row key={one.name} agent={one} last={last.data?.get(one.name)} />)}</ListTable>
                  <p class="hint small">Changes to the servers file apply when you save it.</p>
                </>
              )}
            </>
          );
        }}
      </Shown>
    </div>
  );
}

function Row({ agent, last }: { agent: AgentInfo; last: FoundRun | undefined }) {
  return (
    <tr>
      <td class="main"><a href={link("agents", agent.name)}>{readable(agentName(agent.name))}</a> <span class="hint small">{readable(agent.description)}</span></td>
      <td>{readable(agent.kind ?? "–")}</td>
      <td class="num"><AgentStatus agent={agent} /> <span class="hint small">{agent.status}</span></td>
      <td class="number num">{count(agent.tools.length)}</td>
      <td>{last ? <a href={link("chat", last.thread_id)}><Time of={last.created_at} /></a> : "–"}</td>
      <td class={agent.problem ? "error-text" : ""}>{readable(agent.problem ?? "–")}</td>
    </tr>
  );
}

const AgentStatus = ({ agent }: { agent: AgentInfo }) => <Status of={agent.problem ? "failed" : agent.status === "running" ? "done" : "open"} words={agent.problem ? "has a problem" : (agent.status ?? "unknown")} />;

const TOOL_HEADS = { Tool: "", Description: "", Rules: "", Try: "hidden" } as const;

function AgentView({ agent, onChange }: { agent: AgentInfo; onChange: () => void }) {
  const [trying, setTrying] = useState<Tool | null>(null);
  function ask() {
    keepDraft(undefined, { ...EMPTY, ...readDraft(), choices: { [agent.name]: "prefer" } });
    go("chat");
  }
  return (
    <>
      <header class="view-head">
        <h1>{readable(agentName(agent.name))}</h1>
        <span><AgentStatus agent={agent} /> <span class="hint">{[agent.kind, agent.status].filter(Boolean).join(" · ")}</span></span>
        <p class="buttons"><button type="button" onClick={ask}><Icon name="message" /> Ask this agent</button></p>
      </header>
      <p>{readable(agent.description)}</p>
      {agent.problem && <p class="error-text">{readable(agent.problem)}</p>}
      {agent.open_world && <p class="warn">Output from this server is untrusted.</p>}
      <ListTable label="Tools" heads={TOOL_HEADS} class="tools-table">
        {agent.tools.map((tool) => (
          <tr key={tool.name}>
            <th scope="row">{tool.title && <>{readable(tool.title)}<br /></>}<code>{readable(tool.name)}</code></th>
            <td>{readable(tool.description ?? "")}</td>
            <td class="num">{[tool.read_only && "read only", tool.needs_approval && "needs approval"].filter(Boolean).join(", ") || "–"}</td>
            <td><button type="button" aria-label={`Try ${tool.name}`} onClick={() => setTrying(tool)}>Try</button></td>
          </tr>
        ))}
      </ListTable>
      {trying && <ToolCall agent={agent.name} tool={trying} onClose={() => setTrying(null)} />}
      <Pin server={agent.server} onApproved={onChange} />
    </>
  );
}
