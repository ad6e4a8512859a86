/** The shell: navigation, the view of the address, the palette. */

import { useEffect, useState } from "preact/hooks";
import { ChatView } from "./chat/chat-view.tsx";
import { MemoryView, SkillsView } from "./data/knowledge.tsx";
import { ServersView } from "./data/servers.tsx";
import { TeamsView } from "./data/teams.tsx";
import { DocumentsView } from "./documents/documents.tsx";
import { FleetView } from "./fleet/fleet.tsx";
import { CompareView } from "./inspector/compare.tsx";
import { ReplayView } from "./inspector/replay.tsx";
import { StepsView } from "./inspector/steps.tsx";
import { TraceView } from "./inspector/trace.tsx";
import { AccountView } from "./people/account.tsx";
import { InboxView, refreshWaiting, waiting } from "./people/inbox.tsx";
import { LoginView, Logout, needsLogin } from "./people/login.tsx";
import { Palette } from "./palette.tsx";
import { Notices } from "./parts/notice.tsx";
import { Empty } from "./parts/states.tsx";
import { nextTheme, theme } from "./parts/theme.ts";
import { link, route } from "./router.ts";

const VIEWS = [
  { title: "Chat", address: link("chat") },
  { title: "Inbox", address: link("inbox") },
  { title: "Agents", address: link("agents") },
  { title: "Teams", address: link("teams") },
  { title: "Documents", address: link("documents") },
  { title: "Skills", address: link("skills") },
  { title: "Memory", address: link("memory") },
  { title: "Fleet", address: link("fleet") },
  { title: "Account", address: link("account") },
];

export function App() {
  const [palette, setPalette] = useState(false);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPalette((open) => !open);
      }
    };
    addEventListener("keydown", key);
    void refreshWaiting();
    const timer = setInterval(() => void refreshWaiting(), 15_000);
    return () => {
      removeEventListener("keydown", key);
      clearInterval(timer);
    };
  }, []);
  useEffect(() => {
    document.title = waiting.value ? `(${waiting.value}) Perihelion` : "Perihelion";
  }, [waiting.value]);
  if (needsLogin.value) return <LoginView />;
  const [view = "chat"] = route.value.path;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>Skip to content</a>
      <header class="bar">
        <span class="brand">Perihelion</span>
        <nav aria-label="Views">
          {VIEWS.map((each) => (
            <a key={each.address} href={each.address} aria-current={each.address === link(view) ? "page" : undefined}>
              {each.title}
              {each.title === "Inbox" && waiting.value > 0 && <span class="badge" aria-label={`${waiting.value} waiting`}>{waiting.value}</span>}
            </a>
          ))}
        </nav>
        <button type="button" class="plain" onClick={() => setPalette(true)} title="Go to a view or thread (Ctrl K)">Go to…</button>
        <Logout />
        <button type="button" class="plain" onClick={nextTheme} aria-label={`Theme: ${theme.value}`}>◐</button>
      </header>
      <main id="main" tabIndex={0}>
        <View />
      </main>
      <Notices />
      {palette && <Palette views={VIEWS} onClose={() => setPalette(false)} />}
    </>
  );
}

function View() {
  const { path: [view = "chat", id], query } = route.value;
  switch (view) {
    case "chat":
      return <ChatView thread={id} />;
    case "inbox":
      return <InboxView />;
    case "agents":
      return <ServersView />;
    case "teams":
      return <TeamsView />;
    case "documents":
      return <DocumentsView id={id} query={query} />;
    case "skills":
      return <SkillsView />;
    case "memory":
      return <MemoryView />;
    case "fleet":
      return <FleetView />;
    case "account":
      return <AccountView />;
    case "inspect":
      return id ? <StepsView key={`${id} ${query}`} thread={id} query={query} /> : <ChatView thread={undefined} />;
    case "replay":
      return id ? <ReplayView key={id} thread={id} /> : <ChatView thread={undefined} />;
    case "compare":
      return id ? <CompareView key={id} thread={id} query={query} /> : <ChatView thread={undefined} />;
    case "trace":
      return id ? <TraceView thread={id} /> : <ChatView thread={undefined} />;
    default:
      return <Empty title="Page not found"><p><a href={link("chat")}>Go to threads</a></p></Empty>;
  }
}
