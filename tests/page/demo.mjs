/** The demo with real data: two questions answered, a document added; and its views. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { answered, ask, launch, open } from "./browser.mjs";
import { ROOT, startServer } from "./server.mjs";

/** Starts the demo and a browser; `table` and `chart` are the threads of its questions. */
export async function startDemo() {
  const server = await startServer();
  const sent = await fetch(`${server.url}/v1/documents?name=agents.md`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: await readFile(join(ROOT, "docs/guides/custom-agents.md")) });
  assert.equal(sent.status, 200);
  const browser = await launch();
  const tab = await open(browser, server.url);
  const table = await ask(tab, "Which five countries have the most time zones?");
  await answered(tab, "most time zones");
  const chart = await ask(tab, "Draw how many clock changes there were in each year since 2000.");
  await answered(tab, "most clock changes");
  assert.deepEqual(tab.faults, []);
  await tab.context().close();
  return { server, browser, table, chart };
}

/** Returns the views, each with its address and what shows that it is there. */
export const viewsOf = (table, chart) => [
  ["chat", "chat", (tab) => tab.getByRole("heading", { name: "What do you want to know?" })],
  ["thread", `chat/${chart}`, (tab) => tab.locator("article.answer").first()],
  ["inbox", "inbox", (tab) => tab.getByText("All clear")],
  ["agents", "agents", (tab) => tab.getByRole("region", { name: "Agents" }).getByRole("row").nth(3)],
  ["teams", "teams", (tab) => tab.getByText("time_desk").first()],
  ["graphs", "graphs", (tab) => tab.getByText("No custom graphs")],
  ["documents", "documents", (tab) => tab.getByText("Write a custom agent").first()],
  ["skills", "skills", (tab) => tab.locator(".card, .empty").first()],
  ["memory", "memory", (tab) => tab.locator(".card, .empty").first()],
  ["threads", "threads", (tab) => tab.locator(".row").nth(1)],
  ["runs", "runs", (tab) => tab.getByRole("region", { name: "Runs" }).getByRole("row").nth(2)],
  ["evaluations", "evaluations", (tab) => tab.locator("h1")],
  ["health", "health", (tab) => tab.locator(".tile").nth(7)],
  ["usage", "usage", (tab) => tab.locator(".usage-chart")],
  ["graph", `graph/${chart}`, (tab) => tab.getByRole("img", { name: /timezones: done/ })],
  ["account", "account", (tab) => tab.getByText("on this machine, without a login")],
  ["steps", `inspect/${table}`, (tab) => tab.locator(".step-row").first()],
  ["replay", `replay/${table}`, (tab) => tab.getByText(/each committed the same bytes/)],
  ["compare", `compare/${table}?with=${chart}`, (tab) => tab.getByRole("status").getByText(/differ/)],
  ["trace", `trace/${table}`, (tab) => tab.locator(".trace").getByText(/execute_tool|query/).first()],
];
