/** agent-chat-ui, built from its own sources and unchanged, in Chromium against the real server. AGENT_CHAT_UI names its directory. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { createInterface } from "node:readline";
import { launch } from "../page/browser.mjs";
import { startModel, STORY } from "../page/model.mjs";
import { startServer } from "../page/server.mjs";

const PLACE = process.env.AGENT_CHAT_UI;

/** Milliseconds that a wait for the page may take on a machine that is busy. */
const PATIENCE = 60_000;

let model, server, page, browser, tab;

/** Serves the page that was built, on a port that the system chooses. */
async function startPage() {
  const next = join(PLACE, "node_modules/next/dist/bin/next");
  const child = spawn(process.execPath, [next, "start", "-H", "127.0.0.1", "-p", "0"], {
    cwd: PLACE,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((ready, failed) => {
    child.on("exit", (code) => failed(new Error(`the page's server ended with ${code}`)));
    createInterface(child.stdout).on("line", (line) => {
      const found = line.match(/Local:\s+(http:\S+)/);
      if (found) ready(found[1]);
    });
  });
  return { url, stop: () => child.kill() };
}

/** Opens the page as a person does who follows a link: on a thread, or on none. */
async function open(thread) {
  const query = new URLSearchParams({ apiUrl: server.url, assistantId: "swarm", chatHistoryOpen: "true", ...(thread && { threadId: thread }) });
  await tab.goto(`${page.url}/?${query}`);
  await tab.getByPlaceholder("Type your message...").waitFor();
}

/** Asks, and returns the thread's id once the page knows it. */
async function ask(question) {
  await tab.getByPlaceholder("Type your message...").fill(question);
  await tab.getByRole("button", { name: "Send" }).click();
  await tab.waitForURL(/threadId=[0-9a-f-]{36}/);
  return new URL(tab.url()).searchParams.get("threadId");
}

/** Waits until nothing is under way. */
const atRest = () => tab.getByRole("button", { name: "Send" }).waitFor();

/**
 * Asks for what needs a decision, and comes back to the thread: while a run ends the page fills its form again, and what was
 * typed before that is lost.
 */
async function askForDecision(question) {
  const decision = tab.getByRole("button", { name: "Approve", exact: true });
  const thread = await ask(question);
  await decision.waitFor();
  await atRest();
  await open(thread);
  await decision.waitFor();
  return thread;
}

const shown = (text) => tab.getByText(text, { exact: false }).first();

const notes = () => readFile(join(server.home, "notes.jsonl"), "utf8").catch(() => "");

before(async () => {
  assert.ok(PLACE, "AGENT_CHAT_UI names no directory");
  model = await startModel();
  server = await startServer({ model: model.url });
  page = await startPage();
  browser = await launch();
});

beforeEach(async () => {
  model.release();
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
  tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE);
  tab.faults = [];
  tab.on("pageerror", (error) => tab.faults.push(String(error)));
  tab.on("response", (response) => {
    if (response.url().startsWith(server.url) && response.status() >= 400) tab.faults.push(`${response.status()} ${response.request().method()} ${response.url()}`);
  });
});

afterEach(async () => {
  const { faults } = tab;
  if (process.env.PICTURES) await tab.screenshot({ path: join(process.env.PICTURES, "chat-ui.png") });
  await tab.context().close();
  assert.deepEqual(faults, []);
});

after(async () => {
  await browser?.close();
  page?.stop();
  await server?.stop();
  model?.close();
});

test("an answer is shown as it is written, once", async () => {
  await open();
  model.hold();
  const thread = await ask("tell me a slow story");
  model.release(10);
  await shown(STORY.slice(0, 10).join(" ")).waitFor();
  await tab.getByRole("button", { name: "Cancel" }).waitFor();
  assert.equal(await tab.getByText("word40").count(), 0);
  model.release();
  await shown("word40").waitFor();
  await atRest();
  assert.equal(await tab.getByText(STORY.join(" ")).count(), 1);
  await open(thread);
  await shown("word40").waitFor();
  assert.equal(await tab.getByText(STORY.join(" ")).count(), 1);
});

test("a call is approved", async () => {
  await open();
  await ask("please approve the first note");
  await tab.getByRole("button", { name: "Approve", exact: true }).click();
  await shown("It is written down").waitFor();
  await atRest();
  assert.match(await notes(), /Remember the milk/);
});

test("a call is sent as it was edited", async () => {
  await open();
  await askForDecision("please approve the second note");
  await tab.locator("textarea").filter({ hasText: "Remember the milk" }).fill("Remember the bread");
  await tab.getByRole("button", { name: "Submit", exact: true }).click();
  await shown("It is written down").waitFor();
  await atRest();
  assert.match(await notes(), /Remember the bread/);
});

test("a call is rejected with a reason, and not made", async () => {
  await open();
  const before = await notes();
  await askForDecision("please approve the third note");
  await tab.getByPlaceholder("Share feedback with the agent...").fill("not today");
  await tab.getByRole("button", { name: "Submit rejection" }).click();
  await tab.getByRole("button", { name: "Submit rejection" }).waitFor({ state: "detached" });
  await atRest();
  assert.equal(await notes(), before);
});

test("a thread is opened again after its server was killed, with the question that waits", async () => {
  await open();
  const thread = await askForDecision("please approve the fourth note");
  await tab.goto("about:blank");
  await server.kill();
  await server.start();
  await open(thread);
  await shown("please approve the fourth note").waitFor();
  await tab.getByRole("button", { name: "Approve", exact: true }).click();
  await shown("It is written down").waitFor();
  await atRest();
});

test("an answer that was cut by a crash stands whole in the thread", async () => {
  await open();
  model.hold();
  const thread = await ask("tell me another slow story");
  model.release(10);
  await shown(STORY.slice(0, 10).join(" ")).waitFor();
  await tab.goto("about:blank");
  await server.kill();
  model.release();
  await server.start();
  await server.json(`/threads/${thread}/runs/${(await server.json(`/threads/${thread}/runs`))[0].run_id}/join`);
  await open(thread);
  await shown("word40").waitFor();
  assert.equal(await tab.getByText(STORY.join(" ")).count(), 1);
});

test("threads are listed by what was asked, and opened from the list", async () => {
  await open();
  await tab.getByRole("button", { name: "tell me a slow story" }).first().click();
  await shown("word40").waitFor();
  await tab.getByRole("button", { name: "please approve the second note" }).first().click();
  await shown("It is written down").waitFor();
  assert.ok((await tab.getByRole("button", { name: /slow story|the \w+ note/ }).count()) >= 6);
});
