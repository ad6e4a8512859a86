/** S3.13, S3.02: what people do with the page, in Chromium, against the real server with real MCP servers. */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, answerOf, ask, askMore, confirm, go, inspect, open, openActivity } from "./browser.mjs";
import { STORY } from "./model.mjs";
import { startServer } from "./server.mjs";
import { setStage } from "./stage.mjs";

let model, server, browser, tab;
setStage({}, (stage) => ({ model, server, browser, tab } = stage));

/** Checks that the story stands there whole and once. */
async function hasStoryOnce(shown) {
  await answered(shown, STORY.at(-1));
  // Not its inner text, which is empty until a tab that comes to the front has drawn it.
  assert.equal((await answerOf(shown).first().textContent()).trim(), STORY.join(" "));
  assert.equal(await answerOf(shown).count(), 1);
  assert.equal(await shown.locator(".message.user").count(), 1);
}

test("a question begins a thread, and its answer cites what an agent read", async () => {
  const thread = await ask(tab, "Please read the paper");
  assert.match(await answered(tab, "written down"), /\[1\]/);
  await tab.locator("a.citation").click();
  await tab.getByRole("complementary", { name: "Source" }).getByText("43 seconds of arc").first().waitFor();
  await tab.locator(`.recent a[href="#/chat/${thread}"]`).waitFor();
  await openActivity(tab);
  await tab.locator(".decision summary").click();
  await tab.locator(".decision p").getByText("scripted").first().waitFor();
});

test("an answer appears while it is written, and a refresh in its middle loses and doubles nothing", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(10);
  await answerOf(tab).getByText("word10").waitFor();
  await tab.reload();
  await answerOf(tab).getByText("word1 ").waitFor();
  model.release(5);
  await answerOf(tab).getByText("word15").waitFor();
  model.release();
  await hasStoryOnce(tab);
  await tab.reload();
  await hasStoryOnce(tab);
});

test("a second tab follows the same run, and both end alike", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(8);
  await answerOf(tab).getByText("word8").waitFor();
  const second = await open(browser, tab.url(), { context: tab.context() });
  await answerOf(second).getByText("word8").waitFor();
  model.release();
  await hasStoryOnce(second);
  await tab.bringToFront();
  await hasStoryOnce(tab);
  assert.deepEqual(second.faults, []);
});

test("ten tabs stay live over HTTP/1.1, and a killed server costs none of them a word", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(8);
  await answerOf(tab).getByText("word8").waitFor();
  const others = await Promise.all(Array.from({ length: 9 }, () => open(browser, tab.url(), { context: tab.context() })));
  const all = [tab, ...others];
  model.release(2);
  for (const one of all) await answerOf(one).getByText("word10").waitFor();
  // A browser has six connections for a server; one that is asked for something else answers all the same.
  await go(others[8], "fleet");
  await others[8].getByRole("region", { name: "Threads" }).getByText("working").waitFor();
  await server.kill();
  model.release();
  await server.start();
  for (const one of all.slice(0, 9)) {
    // A tab behind others may draw nothing.
    await one.bringToFront();
    await hasStoryOnce(one);
  }
  for (const one of others) assert.deepEqual(one.faults, []);
});

test("a tab that waits sees the run that another one begins", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await server.json(`/threads/${thread}/runs/wait`, { assistant_id: "swarm", input: { question: "And again?" } });
  await tab.locator(".message.user").filter({ hasText: "And again?" }).waitFor();
  assert.equal(await answerOf(tab).count(), 2);
});

test("a server that is killed in the middle of an answer is found again, and the answer comes once", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(8);
  await answerOf(tab).getByText("word8").waitFor();
  await server.kill();
  await tab.getByText("Connection lost").waitFor();
  model.release();
  await server.start();
  await hasStoryOnce(tab);
  await tab.reload();
  await hasStoryOnce(tab);
});

test("a run is stopped and continues", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(8);
  await answerOf(tab).getByText("word8").waitFor();
  await tab.getByRole("button", { name: "Stop" }).click();
  await tab.getByText("The run was stopped").waitFor();
  model.release();
  await tab.getByRole("button", { name: "Continue" }).click();
  await hasStoryOnce(tab);
});

test("threads are found by words and by how they stand, renamed and deleted", async () => {
  const thread = await ask(tab, "Where does the zebra live?");
  await answered(tab, "Hello from");
  await go(tab, "threads");
  const list = tab.getByRole("region", { name: "Threads" });
  await list.getByLabel("Search threads").fill("zebra");
  await list.getByText("Where does the zebra live?").waitFor();
  await list.locator("li.row").nth(1).waitFor({ state: "detached" });
  await list.getByLabel("Status").selectOption("interrupted");
  await list.getByText(/No matching threads/).waitFor();
  await list.getByLabel("Status").selectOption("");
  await list.getByText("Where does the zebra live?").waitFor();
  await inspect(tab, "the threads");
  await list.getByRole("button", { name: "Rename" }).click();
  await tab.getByLabel("Title").fill("Where the zebra lives");
  await confirm(tab, "Save");
  await list.getByText("Where the zebra lives").waitFor();
  const row = list.locator("li.row").filter({ hasText: "Where the zebra lives" });
  await row.getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  await tab.getByRole("button", { name: "Undo" }).click();
  await row.waitFor();
  assert.match(tab.url(), /#\/threads\?words=zebra$/);
  await go(tab, `chat/${thread}`);
  await tab.getByLabel("More actions").click();
  await tab.getByRole("button", { name: "Delete" }).click();
  await tab.waitForURL(/#\/chat$/);
  const deleted = tab.waitForResponse((response) => response.request().method() === "DELETE");
  await tab.getByRole("button", { name: "Dismiss" }).click();
  await tab.locator(`.recent a[href="#/chat/${thread}"]`).waitFor({ state: "detached" });
  await deleted;
  assert.equal((await fetch(`${server.url}/threads/${thread}`)).status, 404);
});

test("a turn is edited and begins a branch", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await askMore(tab, "What of the moon?");
  await tab.locator(".message.user").nth(1).getByRole("button", { name: "Edit" }).click();
  await tab.getByText("You are editing an earlier turn").waitFor();
  await tab.getByLabel("Your question").fill("What of the sun?");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await tab.locator(".message.user").filter({ hasText: "What of the sun?" }).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  const state = await server.json(`/threads/${thread}/state`);
  const asked = state.values.messages.filter((message) => message.type === "human").map((message) => message.content);
  assert.deepEqual(asked, ["Hello?", "What of the sun?"]);
  assert.equal(await tab.locator(".message.user").count(), 2);
});

test("every view and thread is reached by the keyboard alone", async () => {
  await ask(tab, "Is the walrus awake?");
  await answered(tab, "Hello from");
  await tab.keyboard.press("Control+k");
  await tab.getByRole("combobox", { name: "View or thread" }).waitFor();
  await inspect(tab, "the palette");
  await tab.keyboard.type("heal");
  await tab.keyboard.press("Enter");
  await tab.getByRole("heading", { name: "Health" }).waitFor();
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("walrus");
  await tab.getByRole("option", { name: "Is the walrus awake?" }).waitFor();
  await tab.keyboard.press("Enter");
  await answered(tab, "Hello from");
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("this thread: st");
  await tab.keyboard.press("Enter");
  await tab.getByRole("heading", { name: "Steps" }).waitFor();
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("switch between light");
  await tab.keyboard.press("Enter");
  await tab.getByRole("button", { name: "Theme: light" }).waitFor();
  await tab.keyboard.press("Control+k");
  await tab.keyboard.press("Escape");
  await tab.getByRole("dialog").waitFor({ state: "detached" });
});

test("a thread that the command line began is listed by its first words", async () => {
  await server.program("run", "Who wrote the almanac?", "--quiet");
  await go(tab, "chat");
  await tab.getByRole("link", { name: /Who wrote the almanac/ }).click();
  await answered(tab, "Hello from");
});

test("what a model writes cannot act: no picture is fetched, no script runs", async () => {
  const thread = await server.json("/threads", {});
  const content = "![x](http://127.0.0.1:9/leak.png) <img src=x onerror=alert(1)> [click](javascript:alert(1)) \u202eabc <svg onload=alert(1)><script>alert(1)</script></svg> ![s](data:image/svg+xml;base64,PHN2Zy8+) [d](data:text/html,x) [v](VBScript:x) [j](java\tscript:alert(1))";
  await server.json(`/threads/${thread.thread_id}/state`, { values: { messages: [{ type: "ai", content }] } });
  await go(tab, `chat/${thread.thread_id}`);
  const answer = answerOf(tab).first();
  await answer.waitFor();
  assert.equal(await answer.locator("img, script, object, iframe, [onerror], [onload]").count(), 0);
  const led = await answer.locator("a[href]").evaluateAll((links) => links.map((link) => link.protocol));
  assert.ok(led.every((protocol) => ["http:", "https:", "mailto:"].includes(protocol)), `${led}`);
  assert.match(await answer.innerText(), /⟨U\+202E⟩abc/);
});

test("what is asked while the network is away is kept, and sent again once it is back", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await tab.context().setOffline(true);
  await tab.getByLabel("Your question").fill("And what of the tides?");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  const unsent = tab.getByRole("alert").filter({ hasText: "Not sent" });
  await unsent.waitFor();
  assert.equal(await tab.getByLabel("Your question").inputValue(), "And what of the tides?");
  await tab.context().setOffline(false);
  await unsent.getByRole("button", { name: "Retry" }).click();
  await tab.locator(".message.user").filter({ hasText: "And what of the tides?" }).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  assert.equal((await server.json(`/threads/${thread}/state`)).values.messages.filter(({ type }) => type === "human").length, 2);
  tab.faults = tab.faults.filter((fault) => !fault.includes("ERR_INTERNET_DISCONNECTED"));
});

test("an empty installation leads through its first steps, which check themselves", async () => {
  const bare = await startServer({ model: model.url, bare: true });
  const silent = await startServer({ model: "http://127.0.0.1:9/v1", bare: true, env: { PERIHELION_MODELS_MAX_RETRIES: "0" } });
  try {
    const newcomer = await open(browser, bare.url);
    const step = (title) => newcomer.getByRole("region", { name: "First steps" }).getByRole("listitem").filter({ hasText: title });
    await step("A server is connected").getByRole("img", { name: "not done" }).waitFor();
    await step("The model answers").getByRole("img", { name: "done", exact: true }).waitFor();
    await step("The first question is answered").getByRole("img", { name: "not done" }).waitFor();
    const other = await open(browser, silent.url);
    await other.getByRole("region", { name: "First steps" }).getByRole("listitem").filter({ hasText: "The model answers" }).getByText(/Connection refused/).waitFor();
    await inspect(other, "a model that does not answer");
    await other.context().close();
    await ask(newcomer, "Hello?");
    await answered(newcomer, "Hello from");
    await go(newcomer, "chat");
    await step("The first question is answered").getByRole("img", { name: "done", exact: true }).waitFor();
    await writeFile(join(bare.home, "mcp-servers.toml"), '[mcp_servers.notes]\ndescription = "keeps notes"\ncommand = "perihelion"\nargs = ["mcp", "notes", "--file", "notes.jsonl"]\n');
    await newcomer.getByRole("region", { name: "First steps" }).waitFor({ state: "detached" });
    assert.deepEqual(newcomer.faults, []);
    await newcomer.context().close();
  } finally {
    await bare.stop();
    await silent.stop();
  }
});
