/** S3.13: the conversation: who works on what, options, retries, what stays in place, times, and what is wrong. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { answered, answerOf, ask, askMore, go, inspect, open, openActivity } from "./browser.mjs";
import { LONG } from "./model.mjs";
import { setStage } from "./stage.mjs";

let model, server, browser, tab;
setStage({}, (stage) => ({ model, server, browser, tab } = stage));

test("plan, tasks and graph show who works on what, with which calls, and what waits for what", async () => {
  model.hold();
  await ask(tab, "Please study it");
  await tab.locator(".plan").getByText("look").waitFor();
  const task = (name) => tab.getByRole("list", { name: "Tasks" }).getByRole("listitem").filter({ hasText: name });
  const call = task("Study the paper.").locator(".call").filter({ hasText: "paper.md" });
  await call.getByRole("img", { name: "done" }).waitFor();
  await call.locator("summary").click();
  await call.getByText("43 seconds of arc").first().waitFor();
  await task("Write down what the paper says.").getByText("waits for files").waitFor();
  await inspect(tab, "a run under way");
  // The tests' readers want no motion.
  assert.equal(await tab.locator(".activity .dot").evaluate((one) => getComputedStyle(one).animationName), "none");
  await tab.reload();
  await call.getByRole("img", { name: "done" }).waitFor();
  await go(tab, tab.url().split("#/")[1].replace("chat", "graph"));
  await tab.getByRole("img", { name: /files: working/ }).waitFor();
  await inspect(tab, "the graph");
  await go(tab, tab.url().split("#/")[1].replace("graph", "chat"));
  model.release(1);
  await task("Study the paper.").locator("> .mark.good").waitFor();
  model.release();
  await answered(tab, "written down");
  await openActivity(tab);
  await task("Write down what the paper says.").locator("> .mark.good").waitFor();
  await call.locator(".call-facts").getByText(/ms|s/).waitFor();
  await inspect(tab, "what was done");
});

test("an agent whose call waits for a person is shown as waiting, after a refresh as well", async () => {
  await ask(tab, "Please approve this note");
  const task = tab.getByRole("list", { name: "Tasks" }).getByRole("listitem").filter({ hasText: "Write it down." });
  for (const round of ["at once", "after a refresh"]) {
    await task.getByText("waiting for you").waitFor();
    if (round === "at once") await tab.reload();
  }
  await tab.getByRole("button", { name: "Deny" }).click();
  await tab.getByRole("button", { name: "Deny call" }).click();
  await answered(tab, "written down");
});

test("a request says which agents, what context, how to work and how many rounds", async () => {
  await go(tab, "chat");
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  const chip = (name) => tab.locator(".composer summary").filter({ hasText: name }).click();
  await chip("Agents");
  await tab.getByRole("combobox", { name: /^files/ }).selectOption("Preferred");
  await tab.getByRole("combobox", { name: /^notes/ }).selectOption("Disabled");
  await inspect(tab, "the agents of a request");
  await chip("Instructions");
  await tab.getByLabel(/^Context/).fill("region=north\nyear=1945");
  await tab.getByLabel("Instructions", { exact: true }).fill("Answer in one line.");
  await chip("Limits");
  await tab.getByLabel("Maximum rounds").fill("3");
  await inspect(tab, "the options of a request");
  await tab.getByLabel("Your question").fill("Hello?");
  await tab.keyboard.press("Enter");
  await answered(tab, "Hello from");
  const { values } = await server.json(`/threads/${tab.url().split("/").at(-1)}/state`);
  const { region, year } = values.request_context;
  assert.deepEqual([region, year], ["north", "1945"]);
  const said = JSON.stringify(values);
  for (const part of ["mcp_agent_files", "mcp_agent_notes", "Answer in one line.", "turns: 3"]) assert.ok(said.includes(part), part);
});

test("a turn that failed says why, also after a refresh, and is tried again", async () => {
  model.isBroken = true;
  await ask(tab, "Please break now");
  const failure = tab.locator(".messages .failure");
  await failure.getByText(/the model is broken/).waitFor();
  await inspect(tab, "a failed turn");
  await tab.reload();
  await failure.getByText(/the model is broken/).waitFor();
  assert.equal(await failure.count(), 1);
  model.isBroken = false;
  await failure.getByRole("button", { name: "Try again" }).click();
  await answered(tab, "Hello from");
  assert.equal(await failure.count(), 0);
  assert.equal(await tab.locator(".message.user").count(), 1);
});

test("any turn is asked again, as a branch where it began", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await askMore(tab, "What of the moon?");
  const steps = async () => (await server.json(`/threads/${thread}/history`, { limit: 100 })).length;
  const before = await steps();
  await tab.locator(".message.user").nth(1).getByRole("button", { name: "Retry" }).click();
  await tab.locator('.messages[aria-busy="true"]').waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  const { values } = await server.json(`/threads/${thread}/state`);
  assert.deepEqual(values.messages.filter((one) => one.type === "human").map((one) => one.content), ["Hello?", "What of the moon?"]);
  assert.equal(await answerOf(tab).count(), 2);
  assert.ok((await steps()) > before, "both branches are kept");
  await tab.locator(".message.user").first().getByRole("button", { name: "Retry" }).click();
  await tab.locator(".message.user").nth(1).waitFor({ state: "detached" });
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  await answered(tab, "Hello from");
  assert.equal(await answerOf(tab).count(), 1, "the thread stands where its first turn ended");
});

test("a question moves to the top, its answer grows below, and the end is a click away", async () => {
  await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  model.hold();
  await tab.getByLabel("Your question").fill("Tell a long story");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  const question = tab.locator(".message.user").nth(1);
  await question.waitFor();
  const place = () => question.evaluate((one) => Math.round(one.getBoundingClientRect().top - one.closest(".messages").getBoundingClientRect().top));
  for (const words of [5, 30]) {
    model.release(words);
    await answerOf(tab).last().getByText(`Paragraph ${words === 5 ? 5 : 35} `).waitFor({ state: "attached" });
    assert.ok(Math.abs((await place()) - 16) <= 1, `it stands at ${await place()}`);
  }
  await tab.getByRole("button", { name: "Latest" }).click();
  await tab.waitForFunction(() => { const one = document.querySelector(".messages"); return one.scrollHeight - one.scrollTop - one.clientHeight < 60; });
  model.release(10);
  await answerOf(tab).last().getByText("Paragraph 45 ").waitFor();
  model.release();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
});

test("what one reads stays where it is while the answer grows, and the end is followed by who is there", async () => {
  model.hold();
  await ask(tab, "Tell a long story");
  model.release(40);
  await answerOf(tab).getByText("Paragraph 40 ").waitFor();
  const box = tab.locator(".messages");
  await tab.getByRole("button", { name: "Latest" }).click();
  await tab.waitForFunction(() => { const one = document.querySelector(".messages"); return one.scrollHeight - one.scrollTop - one.clientHeight < 60; });
  await box.hover();
  await tab.mouse.wheel(0, -700);
  const read = answerOf(tab).getByText("Paragraph 25 ");
  await read.scrollIntoViewIfNeeded();
  // Two frames, so that what came in sight has been laid out.
  const place = () => read.evaluate(async (one) => {
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    return Math.round(one.getBoundingClientRect().top);
  });
  const before = await place();
  model.release(15);
  await answerOf(tab).getByText("Paragraph 55 ").waitFor({ state: "attached" });
  assert.equal(await place(), before);
  model.release();
  await answerOf(tab).getByText(`Paragraph ${LONG.length} `).waitFor({ state: "attached" });
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  assert.equal(await place(), before, "nor does it jump at the end");
});

test("a thread that is gone says so and leads back", async () => {
  await go(tab, "chat/00000000-0000-4000-8000-000000000000");
  await tab.getByText("Thread not found").waitFor();
  await inspect(tab, "a thread that is gone");
  await tab.getByRole("link", { name: "Go to threads" }).click();
  await tab.getByRole("heading", { name: "Threads" }).waitFor();
  tab.faults = tab.faults.filter((fault) => !fault.includes("404"));
});

test("an outage is said once, and the view is there again without a reload", async () => {
  await go(tab, "agents");
  await tab.getByRole("region", { name: "Agents" }).getByRole("row").nth(1).waitFor();
  await server.kill();
  await go(tab, "skills");
  const outage = tab.getByRole("alert").filter({ hasText: "Can't reach Perihelion" });
  await outage.waitFor();
  await inspect(tab, "a view without its server");
  assert.equal(await tab.locator(".failure").count(), 0, "one outage is said once");
  await outage.getByRole("button", { name: "Retry now" }).click();
  await outage.getByText(/Retrying in/).waitFor();
  await server.start();
  await tab.locator(".card, .empty").first().waitFor();
  assert.equal(await outage.count(), 0);
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await go(tab, "skills");
  await server.kill();
  await go(tab, `chat/${thread}`);
  await tab.getByText("Not loaded yet").waitFor();
  assert.equal(await tab.locator(".failure").count(), 0, "one outage is said once");
  await server.start();
  await answered(tab, "Hello from");
});

test("what is asked while the server is away is kept over a reload, and sent once", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await tab.getByLabel("Your question").fill("What of the moon?");
  await server.kill();
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  const unsent = tab.getByRole("alert").filter({ hasText: "Not sent" });
  await unsent.waitFor();
  await inspect(tab, "a question that was not sent");
  await server.start();
  await tab.reload();
  await unsent.waitFor();
  assert.equal(await tab.getByLabel("Your question").inputValue(), "What of the moon?");
  // The first answer to the retry is lost: the server has accepted, and the page does not know.
  await tab.route(`**/threads/${thread}/runs`, async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    await route.abort("connectionreset");
    await tab.unroute(`**/threads/${thread}/runs`);
  });
  await unsent.getByRole("button", { name: "Retry" }).click();
  await tab.locator('.unsent button:not([disabled])').waitFor();
  await unsent.getByRole("button", { name: "Retry" }).click();
  await tab.locator(".message.user").nth(1).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  assert.equal(await tab.getByLabel("Your question").inputValue(), "");
  const state = await server.json(`/threads/${thread}/state`);
  assert.deepEqual(state.values.messages.filter((one) => one.type === "human").map((one) => one.content), ["Hello?", "What of the moon?"]);
});

test("an answer gets a score and a note, which stay with the thread; the thread is exported", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await tab.getByRole("button", { name: "Bad answer" }).click();
  await tab.getByLabel("Note", { exact: true }).fill("Too short.");
  await tab.getByLabel("Labels", { exact: true }).fill("style, style");
  await tab.getByRole("button", { name: "Save" }).click();
  await tab.getByText("Too short. · style").waitFor();
  await tab.reload();
  await tab.getByText("Too short. · style").waitFor();
  await tab.locator('button[aria-label="Bad answer"][aria-pressed="true"]').waitFor();
  await inspect(tab, "feedback");
  const { metadata } = await server.json(`/threads/${thread}`);
  const { values } = await server.json(`/threads/${thread}/state`);
  assert.deepEqual(metadata.feedback, { 1: { score: -1, answer: values.messages.at(-1).id, note: "Too short.", labels: ["style"] } });
  const saved = tab.waitForEvent("download");
  await tab.getByLabel("More actions").click();
  await tab.getByRole("button", { name: "Export" }).click();
  assert.match(await readFile(await (await saved).path(), "utf8"), /Hello from the star/);
  // Another answer was not rated.
  await tab.getByRole("button", { name: "Retry" }).click();
  await tab.locator('.messages[aria-busy="true"]').waitFor();
  await answered(tab, "Hello from");
  await tab.locator('button[aria-label="Bad answer"][aria-pressed="false"]').waitFor();
  assert.equal(await tab.getByText("Too short. · style").count(), 0);
});

test("a turn asks the server for as little in a long thread as in a new one", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  const asked = [];
  tab.on("request", (request) => asked.push(new URL(request.url())));
  await askMore(tab, "Please read it again");
  assert.equal(await answerOf(tab).count(), 2);
  await tab.locator(".turn").nth(1).getByText(/^Worked/).waitFor();
  await tab.locator(".turn").nth(1).getByText("Source").first().waitFor();
  // It is looked whether the thread changed.
  await tab.waitForRequest((request) => request.url().endsWith("/threads/search") && request.postData().includes('"ids"'));
  assert.deepEqual(asked.filter(({ pathname }) => pathname === `/threads/${thread}`), []);
  const streams = asked.filter(({ pathname }) => pathname.endsWith("/stream")).map(({ search }) => search);
  assert.deepEqual(streams, ["?stream_mode=messages-tuple,custom,updates"]);
});

test("a turn that another client took meanwhile is there beside one's own", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await tab.getByLabel("Your question").fill("And mine?");
  await server.json(`/threads/${thread}/runs/wait`, { assistant_id: "swarm", input: { question: "And another's?" } });
  await tab.keyboard.press("Enter");
  await tab.locator(".message.user").nth(2).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  const questions = await tab.locator(".message.user .question").allInnerTexts();
  assert.deepEqual(questions, ["Hello?", "And another's?", "And mine?"]);
  assert.equal(await answerOf(tab).count(), 3);
});

test("while the conversation is summed up, the new turn has no work yet, and a stop there keeps its question", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  for (const turn of [1, 2]) {
    await tab.getByLabel("Your question").fill(`Please read it again, number ${turn}`);
    await tab.keyboard.press("Enter");
    await tab.locator(".message.user").nth(turn).waitFor();
    await tab.locator('.messages[aria-busy="false"]').waitFor();
  }
  model.hold();
  await tab.getByLabel("Your question").fill("Say hello");
  await tab.keyboard.press("Enter");
  const turns = tab.locator(".turn");
  const asked = tab.locator(".message.user").filter({ hasText: "Say hello" });
  const second = await open(browser, `${server.url}/#/chat/${thread}`, { context: tab.context() });
  for (const shown of [tab, second]) {
    await shown.bringToFront();
    await shown.locator(".message.user").filter({ hasText: "Say hello" }).waitFor();
    assert.equal(await shown.locator(".turn").nth(3).getByText("paper.md").count(), 0);
    for (const turn of [0, 1, 2]) await shown.locator(".turn").nth(turn).getByText(/^Work/).waitFor();
  }
  assert.deepEqual(second.faults, []);
  await second.close();
  await tab.bringToFront();
  await tab.getByRole("button", { name: "Stop" }).click();
  for (const round of ["at once", "after a refresh"]) {
    await tab.getByText("The run was stopped").waitFor();
    assert.equal(await asked.count(), 1, round);
    if (round === "at once") await tab.reload();
  }
  model.release();
  await tab.getByRole("button", { name: "Continue" }).click();
  await turns.nth(3).getByText("Hello from").waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  assert.equal(await asked.count(), 1);
  assert.equal(await turns.count(), 4);
});

test("times are those of the reader's zone", async () => {
  const thread = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  const { updated_at } = await server.json(`/threads/${thread}`);
  for (const timezoneId of ["Pacific/Auckland", "America/St_Johns"]) {
    const context = await browser.newContext({ timezoneId, locale: "en-GB" });
    const far = await open(browser, `${server.url}/#/chat/${thread}`, { context });
    await go(far, "threads");
    const time = far.locator(`.thread-list a[href="#/chat/${thread}"] time`);
    await time.waitFor();
    const expected = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: timezoneId }).format(new Date(await time.getAttribute("datetime")));
    assert.equal(await time.getAttribute("title"), expected);
    assert.ok(Math.abs(new Date(await time.getAttribute("datetime")) - new Date(updated_at)) < 60_000);
    await go(far, `trace/${thread}`);
    const zone = new Intl.DateTimeFormat("en-GB", { timeZone: timezoneId, timeZoneName: "short" }).formatToParts(new Date()).find((part) => part.type === "timeZoneName").value;
    await far.locator("#trace-span").getByText(zone).first().waitFor();
    assert.deepEqual(far.faults, []);
    await context.close();
  }
});

test("threads are found among more than one page of them", async () => {
  for (let number = 0; number < 60; number += 1) await server.json("/threads", { metadata: { title: number === 0 ? "The okapi thread" : `Filler ${number}` } });
  await go(tab, "threads");
  const list = tab.getByRole("region", { name: "Threads" });
  await list.getByText("Filler 59").waitFor();
  assert.equal(await list.getByText("The okapi thread").count(), 0, "it is not on the first page");
  await list.getByLabel("Search threads").fill("okapi");
  await list.getByText("The okapi thread").waitFor();
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("the okapi");
  await tab.getByRole("option", { name: "The okapi thread" }).waitFor();
  await tab.keyboard.press("Enter");
  await tab.waitForURL(/#\/chat\/[0-9a-f-]{36}/);
});
