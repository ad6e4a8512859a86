/** The page: ways around, the view of the address, keys that work everywhere. */

import { useEffect, useState } from "preact/hooks";
import { threadsChanged } from "./chat/changed.ts";
import { ChatView } from "./chat/chat-view.tsx";
import { ThreadsView } from "./chat/thread-list.tsx";
import { nameOfThread } from "./chat/titles.ts";
import { MemoryView, SkillsView } from "./data/knowledge.tsx";
import { ServersView } from "./data/servers.tsx";
import { TeamsView } from "./data/teams.tsx";
import { DocumentsView } from "./documents/documents.tsx";
import { EvaluationsView } from "./evaluations/evaluations.tsx";
import { GraphsView } from "./graphs/graphs-view.tsx";
import { HealthView } from "./fleet/health.tsx";
import { RunsView } from "./fleet/runs.tsx";
import { UsageView } from "./fleet/usage.tsx";
import { AgainView } from "./inspector/again.tsx";
import { CompareView } from "./inspector/compare.tsx";
import { GraphView } from "./inspector/graph.tsx";
import { ReplayView } from "./inspector/replay.tsx";
import { StepsView } from "./inspector/steps.tsx";
import { TraceView } from "./inspector/trace.tsx";
import { KeysDialog, useKeys } from "./keys.tsx";
import { Palette } from "./palette.tsx";
import { Asking } from "./parts/confirm.tsx";
import { Notices } from "./parts/notice.tsx";
import { Empty } from "./parts/states.tsx";
import { AccountView } from "./people/account.tsx";
import { InboxView, refreshWaiting, waiting } from "./people/inbox.tsx";
import { LoginView, needsLogin } from "./people/login.tsx";
import { link, route } from "./router.ts";
import { titleOf } from "./views.ts";
import { DemoBanner, OutageBanner, PhoneBars, Sidebar } from "./shell.tsx";

export function App() {
  const [open, setOpen] = useState<"palette" | "keys" | null>(null);
  useKeys(setOpen);
  useEffect(() => {
    void refreshWaiting();
    const timer = setInterval(() => void refreshWaiting(), 15_000);
    return () => clearInterval(timer);
  }, [threadsChanged.value]);
  const shown = titleOf(route.value.path, nameOfThread);
  useEffect(() => {
    document.title = `${waiting.value ? `(${waiting.value}) ` : ""}${shown} – Perihelion`;
  }, [waiting.value, shown]);
  if (needsLogin.value) return <LoginView />;
  const search = () => setOpen("palette");
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>Skip to content</a>
      <Sidebar onSearch={search} />
      <PhoneBars onSearch={search} />
      <div class="banners">
        <OutageBanner />
        <DemoBanner />
      </div>
      <main id="main" tabIndex={0}>
        <View />
      </main>
      <Notices />
      <Asking />
      {open === "palette" && <Palette onClose={() => setOpen(null)} />}
      {open === "keys" && <KeysDialog onClose={() => setOpen(null)} />}
    </>
  );
}

function View() {
  const { path: [view = "chat", id], query } = route.value;
  switch (view) {
    case "chat":
      return <ChatView thread={id} />;
    case "threads":
      return <ThreadsView />;
    case "inbox":
      return <InboxView />;
    case "agents":
      return <ServersView agent={id} />;
    case "graphs":
      return <GraphsView graph={id} />;
    case "teams":
      return <TeamsView />;
    case "documents":
      return <DocumentsView id={id} query={query} />;
    case "skills":
      return <SkillsView />;
    case "memory":
      return <MemoryView />;
    case "runs":
      return <RunsView query={query} />;
    case "evaluations":
      return <EvaluationsView query={query} />;
    case "health":
    case "fleet":
      return <HealthView />;
    case "usage":
      return <UsageView />;
    case "account":
      return <AccountView />;
    default:
      return id ? <ThreadTool key={view === "again" ? `${view} ${id} ${query}` : `${view} ${id}`} view={view} thread={id} query={query} /> : <NotFound />;
  }
}

/** A view of one thread beside its conversation. */
function ThreadTool({ view, thread, query }: { view: string; thread: string; query: URLSearchParams }) {
  switch (view) {
    case "inspect":
      return <StepsView thread={thread} query={query} />;
    case "trace":
      return <TraceView thread={thread} query={query} />;
    case "graph":
      return <GraphView thread={thread} />;
    case "replay":
      return <ReplayView thread={thread} />;
    case "again":
      return <AgainView thread={thread} query={query} />;
    case "compare":
      return <CompareView thread={thread} query={query} />;
    default:
      return <NotFound />;
  }
}

function NotFound() {
  return <Empty title="Page not found"><p><a href={link("threads")}>Go to threads</a></p></Empty>;
}
