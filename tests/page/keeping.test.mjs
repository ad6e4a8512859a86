/** S3.13: what a reader typed or decided is kept, and nothing is asked, run or sent twice, whatever happens to the server or the page. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, ask, askMore, go, inspect } from "./browser.mjs";
import { setStage } from "./stage.mjs";

let model, server, tab;
setStage({}, (stage) => ({ model, server, tab } = stage));

const questions = async (thread) => (await server.json(`/threads/${thread}/state`)).values.messages.filter(({ type }) => type === "human").map(({ content }) => content);

/** Forgets what the browser logged of answers that this test took away. */
const forgive = () => (tab.faults = tab.faults.filter((fault) => !/ERR_FAILED|ERR_CONNECTION/.test(fault)));

test("a clarification belongs to the turn that asked for it, and costs no other turn its sources", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await tab.getByLabel("Your question").fill("Please clarify this");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await tab.getByRole("region", { name: "Waiting for you" }).getByText("Which year do you mean?").waitFor();
  // The composer answers, too.
  await tab.getByLabel("Your question").fill("1945");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  const turn = tab.locator(".turn").nth(1);
  await turn.getByText("Hello from the star.").waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  await tab.reload();
  await turn.getByText("Hello from the star.").waitFor();
  assert.equal(await tab.locator(".turn").count(), 2);
  await turn.getByText("Which year do you mean?").waitFor();
  await turn.getByText("1945").waitFor();
  await tab.locator(".turn").first().getByRole("region", { name: "Sources" }).waitFor();
  await inspect(tab, "a turn with a clarification");
  await turn.getByRole("button", { name: "Good answer" }).click();
  await turn.getByRole("button", { name: "Good answer", pressed: true }).waitFor();
  assert.deepEqual(Object.keys((await server.json(`/threads/${thread}`)).metadata.feedback), ["2"]);
  const data = await (await fetch(`${server.url}/v1/evaluations/data?thread=${thread}`)).text();
  assert.deepEqual(data.trim().split("\n").map((line) => JSON.parse(line).name), [`${thread} 1`, `${thread} 2`]);
});

test("the inbox keeps what was typed while the server is away, and while another request is looked at", async () => {
  for (let number = 0; number < 2; number += 1) {
    const { thread_id } = await server.json("/threads", {});
    await server.json(`/threads/${thread_id}/runs/wait`, { assistant_id: "swarm", input: { question: "Please clarify this" } });
  }
  await go(tab, "inbox");
  const answer = tab.getByLabel("Your answer");
  await answer.fill("1945, I think");
  const asked = await tab.locator("article h2 a").getAttribute("href");
  await tab.route("**/v1/approvals/*", (route) => route.abort("connectionreset"));
  await tab.getByRole("button", { name: "Answer", exact: true }).click();
  await tab.locator(".notice.bad").waitFor();
  assert.equal(await answer.inputValue(), "1945, I think");
  assert.equal(await tab.locator("article h2 a").getAttribute("href"), asked, "the same request is open");
  await tab.unroute("**/v1/approvals/*");
  await tab.locator("article h2").click();
  await tab.keyboard.press("j");
  await tab.locator(`article h2 a[href="${asked}"]`).waitFor({ state: "detached" });
  assert.equal(await answer.inputValue(), "");
  await tab.keyboard.press("k");
  await tab.locator(`article h2 a[href="${asked}"]`).waitFor();
  assert.equal(await answer.inputValue(), "1945, I think");
  await tab.getByRole("button", { name: "Answer", exact: true }).click();
  await tab.locator(`article h2 a[href="${asked}"]`).waitFor({ state: "detached" });
  assert.equal(await answer.inputValue(), "");
  forgive();
});

test("a thread that could not be opened is opened again, and no run starts", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  let away = true;
  await tab.route(`**/threads/${thread}`, (route) => (away ? route.fulfill({ status: 500, contentType: "application/json", body: '{"detail":"the disk is full"}' }) : route.continue()));
  await tab.reload();
  await tab.locator(".failure").getByText("the disk is full").waitFor();
  await inspect(tab, "a thread that could not be opened");
  away = false;
  await tab.locator(".failure").getByRole("button", { name: "Try again" }).click();
  await answered(tab, "Hello from");
  assert.equal((await server.json(`/threads/${thread}/runs`)).length, 1);
  tab.faults = tab.faults.filter((fault) => !fault.includes("500"));
});

test("a reload while a question is sent does not ask it twice", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  let arrived;
  const accepted = new Promise((done) => (arrived = done));
  await tab.route(`**/threads/${thread}/runs`, async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    arrived();
  });
  await tab.getByLabel("Your question").fill("What of the moon?");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await accepted;
  await tab.reload();
  await tab.unrouteAll({ behavior: "ignoreErrors" });
  await tab.locator(".message.user").filter({ hasText: "What of the moon?" }).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  assert.equal(await tab.getByLabel("Your question").inputValue(), "What of the moon?");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await tab.waitForFunction(() => document.querySelector("#question").value === "");
  assert.deepEqual(await questions(thread), ["Hello?", "What of the moon?"]);
  forgive();
});

test("an edited question is kept until it is cancelled", async () => {
  await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await askMore(tab, "What of the moon?");
  async function edit() {
    await tab.locator(".message.user").nth(1).getByRole("button", { name: "Edit" }).click();
    await tab.getByText("You are editing an earlier turn").waitFor();
  }
  const question = tab.getByLabel("Your question");
  await edit();
  await question.fill("What of the sun?");
  await tab.reload();
  await edit();
  await tab.waitForFunction(() => document.querySelector("#question").value === "What of the sun?");
  await tab.getByRole("button", { name: "Cancel" }).click();
  await edit();
  await tab.waitForFunction(() => document.querySelector("#question").value === "What of the moon?");
});

test("Escape asks before it discards an edited design, and closes what is on top alone", async () => {
  await go(tab, "teams");
  await tab.getByRole("button", { name: "New team" }).click();
  await tab.getByLabel("Goal").fill("Keep an almanac");
  await tab.keyboard.press("Escape");
  await tab.getByRole("dialog", { name: "Discard what you wrote?" }).getByRole("button", { name: "Cancel" }).click();
  assert.equal(await tab.getByLabel("Goal").inputValue(), "Keep an almanac");
  await tab.keyboard.press("Escape");
  await tab.getByRole("button", { name: "Discard" }).click();
  await tab.getByLabel("Goal").waitFor({ state: "detached" });
  await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await tab.getByRole("button", { name: "Run details" }).click();
  const panel = tab.getByRole("complementary", { name: "Run details" });
  await panel.waitFor();
  await tab.keyboard.press("Control+k");
  await tab.getByRole("dialog").waitFor();
  await tab.keyboard.press("Escape");
  await tab.getByRole("dialog").waitFor({ state: "detached" });
  assert.ok(await panel.isVisible());
  await tab.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
});

test("code stays as it was written, and an address that leads nowhere is no link", async () => {
  const { thread_id } = await server.json("/threads", {});
  const content = "Write `![alt](x.png)`, see [there](other.html) and [the docs](https://example.org/). See [2] in `a[1]`.\n\n```\nif (![1].length) {}\n```";
  await server.json(`/threads/${thread_id}/state`, { values: { messages: [{ type: "ai", content }] } });
  await go(tab, `chat/${thread_id}`);
  const answer = tab.locator("article.answer");
  await answer.getByText("![alt](x.png)").waitFor();
  await answer.getByText("if (![1].length) {}").waitFor();
  assert.deepEqual(await answer.locator("a[href]").evaluateAll((links) => links.map((link) => link.getAttribute("href"))), ["https://example.org/", "#cite-2"]);
});

test("steps say what each did, appear while a run works, and stand in the address", async () => {
  model.hold();
  const thread = await ask(tab, "Please study it");
  await go(tab, `inspect/${thread}`);
  const step = (words) => tab.locator(".step-row").filter({ hasText: words });
  await step("Supervisor handed tasks to files and notes").waitFor();
  await step("You asked “Please study it”").click();
  await tab.waitForURL(/\?step=1$/);
  model.release();
  await step("files answered: “It gave:").waitFor();
  await step("Answered: “It is written down").waitFor();
  await step("You asked").and(tab.locator('[aria-pressed="true"]')).waitFor();
  await tab.reload();
  await step("You asked").and(tab.locator('[aria-pressed="true"]')).waitFor();
  await inspect(tab, "steps in words");
});

test("a deleted thread leaves the list where it is, and single keys are switched off", async () => {
  await ask(tab, "Where is the heron?");
  await answered(tab, "Hello from");
  assert.match(await tab.title(), /^(\(\d+\) )?Where is the heron\? – Perihelion$/);
  await go(tab, "threads");
  await tab.getByRole("button", { name: "Delete Where is the heron?" }).click();
  await tab.getByRole("button", { name: "Delete Where is the heron?" }).waitFor({ state: "detached" });
  assert.match(tab.url(), /#\/threads$/);
  await go(tab, "account");
  await tab.getByLabel("Single-key shortcuts").uncheck();
  await tab.getByRole("heading", { name: "Settings" }).click();
  await tab.keyboard.press("c");
  await tab.keyboard.press("Control+k");
  await tab.getByRole("dialog").waitFor();
  assert.match(tab.url(), /#\/account$/);
});

test("searches, tabs, the open request and the open source stand in the address", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await tab.locator("a.citation").click();
  await tab.waitForURL(/\?source=1\.1$/);
  await tab.reload();
  await tab.getByRole("complementary", { name: "Source" }).getByText("43 seconds of arc").first().waitFor();
  await go(tab, "threads");
  await tab.getByLabel("Search threads").fill("paper");
  await tab.getByLabel("Status").selectOption("idle");
  await tab.waitForURL(/words=paper/);
  await tab.reload();
  assert.equal(await tab.getByLabel("Search threads").inputValue(), "paper");
  assert.equal(await tab.getByLabel("Status").inputValue(), "idle");
  await tab.getByRole("region", { name: "Threads" }).locator(`a[href="#/chat/${thread}"]`).waitFor();
  await go(tab, "inbox");
  await tab.getByRole("button", { name: "Decided" }).click();
  await tab.reload();
  await tab.getByRole("button", { name: "Decided", pressed: true }).waitFor();
});
