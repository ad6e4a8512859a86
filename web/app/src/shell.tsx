/** Ways around the page: the sidebar, which is a bar of icons on small screens, and the bars of phones. */

import { useState } from "preact/hooks";
import { lastReached, nextTry, reachable, tryNow } from "./api/reachable.ts";
import { useDemo } from "./demo.ts";
import { DemoQuestions, UseYourModel } from "./chat/demo.tsx";
import { RecentThreads } from "./chat/recent-threads.tsx";
import { Dialog } from "./parts/dialog.tsx";
import { Icon } from "./parts/icon.tsx";
import { useClosing } from "./parts/menu.tsx";
import { nextTheme, theme } from "./parts/theme.ts";
import { Time } from "./parts/time.tsx";
import { waiting } from "./people/inbox.tsx";
import { Logout } from "./people/login.tsx";
import { route } from "./router.ts";
import { ACCOUNT, ASK, GROUPS, INBOX, THREADS, isHere, type Place } from "./views.ts";

const THEME_ICONS = { system: "monitor", light: "sun", dark: "moon" } as const;

function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <ellipse cx="16" cy="16" rx="14" ry="9" fill="none" stroke="#c2410c" stroke-width="2" />
      <circle cx="11" cy="16" r="4" fill="#f59e0b" />
      <circle cx="2.6" cy="14" r="2.2" fill="#1d4ed8" />
    </svg>
  );
}

function Waiting() {
  return waiting.value > 0 ? <span class="badge" aria-label={`${waiting.value} waiting`}>{waiting.value}</span> : null;
}

function SideLink({ to }: { to: Place }) {
  return (
    <a class="side-link" href={to.address} aria-current={isHere(to, route.value.path) ? "page" : undefined} title={to.title}>
      <Icon name={to.icon} />
      <span class="label">{to.title}</span>
      {to === INBOX && <Waiting />}
    </a>
  );
}

function ThemeButton() {
  return (
    <button type="button" class="side-link" onClick={nextTheme} title="Switch the theme">
      <Icon name={THEME_ICONS[theme.value]} />
      <span class="label">Theme: {theme.value}</span>
    </button>
  );
}

export function Sidebar({ onSearch }: { onSearch: () => void }) {
  return (
    <nav class="sidebar" aria-label="Views">
      <div class="brand"><Mark /> <b>Perihelion</b></div>
      <a class="button primary ask-button" href={ASK.address} title="Ask a question (C)" aria-current={isHere(ASK, route.value.path) ? "page" : undefined}><Icon name="plus" /> <span class="label">Ask</span></a>
      <button type="button" class="side-link" onClick={onSearch} title="Search (Ctrl K)"><Icon name="search" /> <span class="label">Search</span></button>
      <SideLink to={INBOX} />
      <div class="sidebar-scroll">
        <SideLink to={THREADS} />
        <RecentThreads />
        {GROUPS.map(([title, places]) => (
          <div key={title}>
            <p class="sidebar-group">{title}</p>
            {places.map((place) => <SideLink key={place.address} to={place} />)}
          </div>
        ))}
      </div>
      <div class="sidebar-foot">
        <p class="connection"><span class={reachable.value ? "dot good" : "dot bad"} aria-hidden="true" /> <span>{reachable.value ? "Connected" : "Not connected"}</span></p>
        <ThemeButton />
        <SideLink to={ACCOUNT} />
        <Logout />
      </div>
    </nav>
  );
}

/** The bars of a phone: what is open at the top, the ways at the bottom. */
export function PhoneBars({ onSearch }: { onSearch: () => void }) {
  const [more, setMore] = useState(false);
  const { path } = route.value;
  const close = () => setMore(false);
  return (
    <>
      <header class="top-bar">
        <Mark /> <b>Perihelion</b>
        <button type="button" class="square" onClick={onSearch} aria-label="Search"><Icon name="search" /></button>
      </header>
      <nav class="bottom-bar" aria-label="Main views">
        {[ASK, THREADS, INBOX].map((place) => (
          <a key={place.address} href={place.address} aria-current={isHere(place, path) ? "page" : undefined}>
            <Icon name={place.icon} /> {place.title} {place === INBOX && <Waiting />}
          </a>
        ))}
        <button type="button" aria-haspopup="dialog" aria-current={[ASK, THREADS, INBOX].some((place) => isHere(place, path)) ? undefined : "page"} onClick={() => setMore(true)}><Icon name="more" /> More</button>
      </nav>
      {more && (
        <Dialog title="More" onClose={close} class="sheet more-sheet">
          <div onClick={(event) => (event.target as Element).closest("a") && close()}>
            <button type="button" class="side-link" onClick={() => (close(), onSearch())}><Icon name="search" /> Search</button>
            {GROUPS.flatMap(([, places]) => places).map((place) => <SideLink key={place.address} to={place} />)}
            <SideLink to={ACCOUNT} />
            <ThemeButton />
            <Logout />
          </div>
        </Dialog>
      )}
    </>
  );
}

/** One line for an outage, however many requests failed. */
export function OutageBanner() {
  if (reachable.value) return null;
  return (
    <div class="banner bad" role="alert">
      <span>Can't reach Perihelion. You see the data of <Time of={lastReached.value} />.</span>
      {/* It changes every second, which nobody wants read to them. */}
      <span aria-hidden="true">{nextTry.value > 0 ? `Retrying in ${nextTry.value} s.` : "Retrying…"}</span>
      <button type="button" onClick={() => void tryNow()}>Retry now</button>
    </div>
  );
}

/** Says that this is the demo. */
export function DemoBanner() {
  const isDemo = useDemo();
  const box = useClosing();
  // Where one asks, the questions themselves stand.
  const [view = "chat", id] = route.value.path;
  if (!isDemo || (view === "chat" && id === undefined)) return null;
  return (
    <aside class="banner" aria-label="Demo">
      <span><strong>Demo:</strong> real data, scripted answers.</span>
      <details class="demo-questions" ref={box}>
        <summary>Its questions</summary>
        <div onClick={() => box.current && (box.current.open = false)}><DemoQuestions /></div>
      </details>
      <UseYourModel />
    </aside>
  );
}

