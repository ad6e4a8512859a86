/** How threads, runs and processes stand now, and the alerts with what to do. */

import type { ComponentChildren } from "preact";
import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { useLoad } from "../parts/load.ts";
import { Shown } from "../parts/states.tsx";
import { Status } from "../parts/status.tsx";
import { clip, readable } from "../parts/text.ts";
import { Time, count, moment, plural } from "../parts/time.tsx";
import { link } from "../router.ts";

interface Standing {
  tenant: string;
  threads: { [state: string]: number };
  runs: { [status: string]: number };
  waits_since: string | null;
  workers: { name: string; runs: number; seen_at: string | null }[];
  failures: { thread_id: string; run_id: string; status: string; error: Json; at: string }[];
  alerts: { name: string; since: string | null; about: string }[];
}

/** Names of threads by their states; those that are under way count as runs. */
const STATES = { idle: "idle", busy: "working", interrupted: "waiting", failed: "failed", stopped: "stopped" };

export function StandingSection() {
  const standing = useLoad(() => json<Standing>("v1/fleet"), [], { every: 10_000 });
  return (
    <Shown of={standing} what="the status">
      {(now) => (
        <>
          <section aria-label="Alerts">
            {now.alerts.length === 0 ? <p role="status"><Status of="done" words="good" /> All clear</p> : now.alerts.map((alert) => (
              <div key={alert.about} class="failure" role="alert">
                <p><strong>{readable(alert.name)}</strong> {alert.since && <span class="hint">since {moment(alert.since)}</span>}</p>
                <p>{readable(alert.about)}</p>
                <AlertHelp name={alert.name} />
              </div>
            ))}
          </section>
          <Tiles title="Threads">
            {Object.entries(STATES).map(([state, name]) => <Tile key={state} name={name} number={now.threads[state] ?? 0} />)}
          </Tiles>
          <Tiles title="Runs">
            <Tile name="queued" number={now.runs.pending ?? 0} {...(now.waits_since && { about: `longest since ${moment(now.waits_since)}` })} />
            <Tile name="in progress" number={now.runs.running ?? 0} />
            <Tile name="failed" number={(now.runs.error ?? 0) + (now.runs.timeout ?? 0)} />
          </Tiles>
          {now.workers.length > 0 && (
            <section>
              <h2>Workers</h2>
              <ul class="plain-list">{now.workers.map((worker) => <li key={worker.name}><code>{readable(worker.name)}</code> drives {plural(worker.runs, "run")}{worker.seen_at && <>, last seen at <Time of={worker.seen_at} /></>}</li>)}</ul>
            </section>
          )}
          {now.failures.length > 0 && (
            <section>
              <h2>Failed in the last 7 days</h2>
              <ul class="plain-list">{now.failures.map((failure) => <li key={failure.run_id}><a href={link("chat", failure.thread_id)}>{failure.thread_id.slice(0, 8)}</a> <Time of={failure.at} /> <span class="error-text">{readable(clip(said(failure.error) || failure.status, 300))}</span></li>)}</ul>
            </section>
          )}
        </>
      )}
    </Shown>
  );
}

/** Where an alert leads: to the servers, the runs or the inbox. */
const HELP: [RegExp, string, string][] = [
  [/server|mcp/i, "agents", "Show agents and servers"],
  [/wait|approval|question/i, "inbox", "Open the inbox"],
  [/run|thread|fail|error|queue/i, "runs", "Show runs"],
  [/cost|token|budget|usage/i, "usage", "Show usage"],
];

function AlertHelp({ name }: { name: string }) {
  const found = HELP.find(([pattern]) => pattern.test(name));
  return found ? <p class="buttons"><a class="button" href={link(found[1])}>{found[2]}</a></p> : null;
}

function said(error: Json): string {
  if (typeof error === "object" && error !== null && !Array.isArray(error)) return String(error.message ?? error.error ?? "");
  return error === null ? "" : String(error);
}

function Tiles({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div class="tiles">{children}</div>
    </section>
  );
}

function Tile({ name, number, about }: { name: string; number: number; about?: string }) {
  return (
    <div class="tile">
      <span class="tile-number">{count(number)}</span>
      <span>{name}</span>
      {about && <span class="hint">{about}</span>}
    </div>
  );
}
