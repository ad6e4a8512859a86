/** S3.13, S3.02: what people do with the page, in Chromium, against the real server with real MCP servers. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, answerOf, ask, go, inspect, open } from "./browser.mjs";
import { STORY } from "./model.mjs";
import { startServer } from "./server.mjs";
import { setStage } from "./stage.mjs";

let model, server, browser, tab;
setStage({}, (stage) => ({ model, server, browser, tab } = stage));

const notes = () => readFile(join(server.home, "notes.jsonl"), "utf8").catch(() => "");

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
  await tab.locator("#cite-1.opened").waitFor();
  await tab.getByText("43 seconds of arc").first().waitFor({ state: "attached" });
  await tab.locator(`.thread-list a[href="#/chat/${thread}"] .mark.idle`).waitFor();
  await tab.getByText("Decision").click();
  await tab.locator(".side details[open] p").getByText("scripted").waitFor();
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
  model.release(5);
  await answerOf(tab).getByText("word5").waitFor();
  const second = await open(browser, tab.url(), { context: tab.context() });
  await answerOf(second).getByText("word5").waitFor();
  model.release();
  await hasStoryOnce(second);
  await tab.bringToFront();
  await hasStoryOnce(tab);
  assert.deepEqual(second.faults, []);
});

test("ten tabs stay live over HTTP/1.1, and a killed server costs none of them a word", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(3);
  await answerOf(tab).getByText("word3").waitFor();
  const others = await Promise.all(Array.from({ length: 9 }, () => open(browser, tab.url(), { context: tab.context() })));
  const all = [tab, ...others];
  model.release(7);
  for (const one of all) await answerOf(one).getByText("word10").waitFor();
  // A browser has six connections for a server; one that is asked for something else answers all the same.
  await go(others[8], "fleet");
  await others[8].getByText("threads busy").waitFor();
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
  await tab.getByText("The connection was lost").waitFor();
  model.release();
  await server.start();
  await hasStoryOnce(tab);
  await tab.reload();
  await hasStoryOnce(tab);
});

test("a run is stopped and goes on", async () => {
  model.hold();
  await ask(tab, "Tell a slow story");
  model.release(3);
  await answerOf(tab).getByText("word3").waitFor();
  await tab.getByRole("button", { name: "Stop" }).click();
  await tab.getByText("The run was stopped").waitFor();
  model.release();
  await tab.getByRole("button", { name: "Continue" }).click();
  await hasStoryOnce(tab);
});

test("a call is shown with its arguments, and made once it is approved", async () => {
  const had = await notes();
  await ask(tab, "Please approve this note");
  const card = tab.getByRole("region", { name: "Waits for you" });
  await card.getByText("Remember the milk").waitFor();
  await card.getByText("notes.append_note").waitFor();
  await inspect(tab, "an approval");
  assert.equal(await notes(), had, "nothing is sent before");
  await card.getByRole("button", { name: "Approve" }).click();
  await answered(tab, "written down");
  assert.match((await notes()).slice(had.length), /Remember the milk/);
  assert.equal(await card.count(), 0);
});

test("a call is denied from the inbox with a reason, which the agent is given", async () => {
  const had = await notes();
  const thread = await ask(tab, "Please approve this note");
  await tab.getByRole("button", { name: "Approve", exact: true }).waitFor();
  const other = await open(browser, server.url, { context: tab.context() });
  await go(other, "inbox");
  const entry = other.locator("article").filter({ has: other.locator(`a[href="#/chat/${thread}"]`) });
  await entry.getByText("Remember the milk").waitFor();
  await other.locator(".badge").waitFor();
  await inspect(other, "the inbox");
  await entry.getByLabel("Reason").fill("not today");
  await entry.getByRole("button", { name: "Deny", exact: true }).click();
  await entry.waitFor({ state: "detached" });
  assert.deepEqual(other.faults, []);
  await other.close();
  await tab.bringToFront();
  await answered(tab, "written down");
  assert.equal(await notes(), had);
  const state = await server.json(`/threads/${thread}/state`);
  assert.match(JSON.stringify(state.values.results), /not today/);
});

test("a decision that comes too late says so", async () => {
  const had = await notes();
  const thread = await ask(tab, "Please approve this note");
  await tab.getByRole("button", { name: "Approve", exact: true }).waitFor();
  // Somebody else is quicker: between the click and its arrival.
  await tab.route("**/v1/approvals/*", async (route) => {
    const id = route.request().url().split("/").at(-1);
    await server.json(`/v1/approvals/${id}/deny`, {});
    await route.continue();
  });
  await tab.getByRole("button", { name: "Approve", exact: true }).click();
  await tab.locator(".notice.bad").getByText(/nothing of this id waits/).waitFor();
  await answered(tab, "written down");
  assert.equal(await notes(), had);
  assert.equal((await server.json(`/threads/${thread}`)).status, "idle");
  tab.faults = tab.faults.filter((fault) => !fault.includes("409"));
});

test("a question of the supervisor is answered", async () => {
  await ask(tab, "Please clarify this");
  await tab.getByText("Which year do you mean?").first().waitFor();
  await tab.getByLabel("Your answer").fill("1945");
  await tab.getByRole("button", { name: "Answer" }).click();
  await answered(tab, "Hello from");
});

test("threads are found by words and by how they stand, renamed and deleted", async () => {
  const thread = await ask(tab, "Where does the zebra live?");
  await answered(tab, "Hello from");
  const list = tab.getByRole("navigation", { name: "Threads" });
  await list.getByLabel("Search threads").fill("zebra");
  await list.getByText("Where does the zebra live?").waitFor();
  assert.equal(await list.locator("li a").count(), 1);
  await list.getByLabel("Status").selectOption("interrupted");
  await list.getByText(/No thread/).waitFor();
  await list.getByLabel("Status").selectOption("");
  await list.getByText("Where does the zebra live?").waitFor();
  await list.getByRole("button", { name: "Delete" }).click();
  await tab.waitForURL(/#\/chat$/);
  assert.equal((await fetch(`${server.url}/threads/${thread}`)).status, 404);
});

test("a turn is edited and begins a branch", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await tab.getByLabel("Your question").fill("What of the moon?");
  await tab.getByRole("button", { name: "Ask" }).click();
  await tab.locator(".message.user").nth(1).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  await tab.locator(".message.user").nth(1).getByRole("button", { name: "Edit and branch" }).click();
  await tab.getByText("You edit an earlier turn").waitFor();
  await tab.getByLabel("Your question").fill("What of the sun?");
  await tab.getByRole("button", { name: "Ask" }).click();
  await tab.locator(".message.user").filter({ hasText: "What of the sun?" }).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  const state = await server.json(`/threads/${thread}/state`);
  const asked = state.values.messages.filter((message) => message.type === "human").map((message) => message.content);
  assert.deepEqual(asked, ["Hello?", "What of the sun?"]);
  assert.equal(await tab.locator(".message.user").count(), 2);
});

test("steps are shown with their state and what changed between any two", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `inspect/${thread}`);
  const rows = tab.locator(".step-row");
  await rows.first().getByText("qa → end").waitFor();
  const changes = tab.locator(".changes");
  await changes.getByText("answer", { exact: true }).waitFor();
  await tab.getByLabel("Compare with").selectOption({ index: await rows.count() });
  await tab.getByText("What changed since step 1").waitFor();
  await changes.getByText("plan.0").waitFor();
  await rows.last().click();
  await tab.locator(".json-line").filter({ hasText: "input_request" }).getByText("Please read the paper").waitFor();
  await inspect(tab, "steps");
});

test("a branch begins at a step with an edited state", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `inspect/${thread}`);
  await tab.locator(".step-row").filter({ hasText: "→ qa" }).click();
  await tab.getByRole("button", { name: "Branch from here" }).click();
  await tab.getByLabel("Edit a field").selectOption("plan");
  await tab.getByLabel("New value of plan").fill("[oops");
  await tab.getByRole("button", { name: "Branch", exact: true }).click();
  await tab.getByText("this is not JSON").waitFor();
  await tab.getByLabel("New value of plan").fill('["another plan"]');
  await inspect(tab, "the dialog of a branch");
  await tab.getByRole("button", { name: "Branch", exact: true }).click();
  await answered(tab, "written down");
  await tab.locator(".plan").getByText("another plan").waitFor();
  const state = await server.json(`/threads/${thread}/state`);
  assert.deepEqual(state.values.plan, ["another plan"]);
  assert.equal(state.values.messages.length, 3, "the earlier answer is on the other branch");
});

test("the trace of a run is shown in the page", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `trace/${thread}`);
  const trace = tab.frameLocator("iframe");
  await trace.getByText("Please read the paper").first().waitFor();
  await trace.getByText(/chat scripted/).first().waitFor();
});

test("agents are shown with how they stand, their tools and the rules around these", async () => {
  await go(tab, "agents");
  const agent = tab.locator(".card").filter({ hasText: "keeps notes" });
  await agent.locator("summary").click();
  await agent.getByText(/tools · (running|cached|stopped)/).waitFor();
  await agent.getByRole("row").filter({ hasText: "append_note" }).getByText("asks first").waitFor();
});

test("every view and thread is reached by the keyboard alone", async () => {
  await ask(tab, "Is the walrus awake?");
  await answered(tab, "Hello from");
  await tab.keyboard.press("Control+k");
  await tab.getByRole("combobox", { name: "View or thread" }).waitFor();
  await inspect(tab, "the palette");
  await tab.keyboard.type("fle");
  await tab.keyboard.press("Enter");
  await tab.getByRole("heading", { name: "Fleet" }).waitFor();
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("walrus");
  await tab.getByRole("option", { name: "Is the walrus awake?" }).waitFor();
  await tab.keyboard.press("Enter");
  await answered(tab, "Hello from");
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

test("a team is designed for a goal, kept, shown and deleted", async (t) => {
  if ((await fetch(`${server.url}/v1/teams`)).status === 404) return t.skip("this server has no teams");
  await go(tab, "teams");
  await tab.getByRole("button", { name: "New team" }).click();
  await tab.getByLabel("Goal").fill("Keep an almanac");
  await tab.getByRole("button", { name: "Design" }).click();
  await tab.getByLabel("The design").waitFor();
  await inspect(tab, "the design of a team");
  await tab.getByRole("button", { name: "Save" }).click();
  const team = tab.locator(".card").filter({ hasText: "almanac" });
  await team.locator("summary").click();
  await team.getByRole("row").filter({ hasText: "reader" }).getByText("files").waitFor();
  await team.getByRole("button", { name: "Delete" }).click();
  await team.waitFor({ state: "detached" });
});

test("a server with a token is used with it, and not without", async () => {
  const guarded = await startServer({ model: model.url, token: "open-sesame-and-come-in" });
  try {
    const guest = await open(browser, guarded.url);
    const enter = async (secret) => {
      await guest.getByLabel("API key").fill(secret);
      await guest.getByRole("button", { name: "Use the key" }).click();
    };
    await guest.getByLabel("API key").waitFor();
    await inspect(guest, "the login");
    await enter("wrong");
    await guest.getByRole("alert").getByText("The key is not").waitFor();
    await enter("open-sesame-and-come-in");
    const thread = await ask(guest, "Hello?");
    await answered(guest, "Hello from");
    await go(guest, `trace/${thread}`);
    const saved = guest.waitForEvent("download");
    await guest.getByRole("button", { name: "Save the trace as a page" }).click();
    assert.match((await saved).suggestedFilename(), /^trace-.*\.html$/);
    await guest.getByRole("button", { name: "Log out" }).click();
    await guest.getByLabel("API key").waitFor();
    assert.deepEqual(guest.faults.filter((fault) => !fault.includes("401")), []);
    await guest.context().close();
  } finally {
    await guarded.stop();
  }
});

test("a person registers, logs in and logs out", async (t) => {
  const known = await fetch(`${server.url}/v1/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"name":"x","password":"x"}' });
  if (known.status === 404) return t.skip("this server has no users");
  const guarded = await startServer({ model: model.url, token: "open-sesame-and-come-in" });
  try {
    const guest = await open(browser, guarded.url);
    const enter = async (button) => {
      await guest.getByLabel("Name").fill("ada");
      await guest.getByLabel("Password").fill("correct horse battery staple");
      await guest.getByRole("button", { name: button }).click();
    };
    await enter("Register");
    const thread = await ask(guest, "Please approve this note");
    await guest.getByRole("button", { name: "Approve", exact: true }).click();
    await answered(guest, "written down");
    await go(guest, `trace/${thread}`);
    await guest.frameLocator("iframe").getByText(/chat scripted/).first().waitFor();
    await guest.getByRole("button", { name: "Log out" }).click();
    await enter("Log in");
    await guest.getByRole("heading", { name: "Trace" }).waitFor();
    await go(guest, "chat");
    await guest.locator(`.thread-list a[href="#/chat/${thread}"]`).waitFor();
    assert.deepEqual(guest.faults.filter((fault) => !fault.includes("401")), []);
    await guest.context().close();
  } finally {
    await guarded.stop();
  }
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
