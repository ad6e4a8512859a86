/** S3.13, S3.09: calls that wait for a person, questions, forms, addresses, calls of unknown outcome, and answers that come too late. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, ask, go, inspect, open, openActivity } from "./browser.mjs";
import { setStage } from "./stage.mjs";

let model, server, browser, tab;
setStage({ further: ["asker"] }, (stage) => ({ model, server, browser, tab } = stage));

const notes = () => readFile(join(server.home, "notes.jsonl"), "utf8").catch(() => "");
/** Returns the request of a thread that waits for a person. */
const waitingIn = async (thread) => (await server.json("/v1/approvals")).find(({ thread_id }) => thread_id === thread);

/** Opens the request of a thread in the inbox, whatever else waits there, and returns its card. */
async function inInbox(on, thread) {
  await go(on, `inbox?request=${(await waitingIn(thread)).id}`);
  const entry = on.locator("article").filter({ has: on.locator(`a[href="#/chat/${thread}"]`) });
  await entry.waitFor();
  return entry;
}

/** What the asker did, line by line. */
const deeds = () => readFile(join(server.home, "asked.log"), "utf8").catch(() => "");

test("a call is shown with its arguments, and made once it is approved", async () => {
  const had = await notes();
  await ask(tab, "Please approve this note");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.getByText("Remember the milk").waitFor();
  await card.getByText("notes wants to append a note").waitFor();
  await card.getByText("notes.append_note").waitFor();
  await inspect(tab, "an approval");
  assert.equal(await notes(), had, "nothing is sent before");
  await card.getByRole("button", { name: "Approve" }).click();
  await answered(tab, "written down");
  assert.match((await notes()).slice(had.length), /Remember the milk/);
  assert.equal(await card.count(), 0);
  // The decision stays where it was asked for.
  for (const round of ["at once", "after a refresh"]) {
    await tab.locator(".decided").getByText(/Approved: append a note, by local/).waitFor();
    if (round === "at once") await tab.reload();
  }
});

test("a call is asked for, edited and approved by the keyboard alone", async () => {
  const had = await notes();
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  await tab.keyboard.type("Please approve this note");
  await tab.keyboard.press("Enter");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.waitFor();
  /** Moves on with the tabulator until something has the focus. */
  async function reach(wanted) {
    for (let presses = 0; presses < 80; presses += 1) {
      await tab.keyboard.press("Tab");
      if (await wanted.evaluate((one) => one === document.activeElement)) return;
    }
    assert.fail(`the keyboard does not reach ${wanted}`);
  }
  await reach(card.getByRole("button", { name: "Edit", exact: true }));
  await tab.keyboard.press("Enter");
  await reach(card.getByLabel("text"));
  await tab.keyboard.press("Control+a");
  await tab.keyboard.type("Remember the keys");
  await reach(card.getByRole("button", { name: "Approve as edited" }));
  await tab.keyboard.press("Enter");
  await answered(tab, "written down");
  assert.match((await notes()).slice(had.length), /Remember the keys/);
});

test("arguments with a number that a browser would round are not sent", async () => {
  await ask(tab, "Please approve this note");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.getByRole("button", { name: "Edit", exact: true }).click();
  await card.getByRole("button", { name: "Edit as JSON" }).click();
  await card.getByLabel("Arguments").fill('{"text":"Pay","account":12345678901234567}');
  await card.getByRole("button", { name: "Approve as edited" }).click();
  await card.getByText("A number here has more digits than a browser can send.").waitFor();
  await card.getByLabel("Arguments").fill('{"text":"Remember the account 12345678901234567"}');
  const had = await notes();
  await card.getByRole("button", { name: "Approve as edited" }).click();
  await answered(tab, "written down");
  assert.match((await notes()).slice(had.length), /12345678901234567/);
});

test("a call is denied from the inbox with a reason, which the agent is given", async () => {
  const had = await notes();
  const thread = await ask(tab, "Please approve this note");
  await tab.getByRole("button", { name: "Approve", exact: true }).waitFor();
  const other = await open(browser, server.url, { context: tab.context() });
  const entry = await inInbox(other, thread);
  await entry.getByText("Remember the milk").waitFor();
  await other.locator(".badge").first().waitFor();
  await inspect(other, "the inbox");
  await entry.getByRole("button", { name: "Deny", exact: true }).click();
  await inspect(other, "a denial");
  await entry.getByLabel("Note for the agent").fill("not today");
  await entry.getByRole("button", { name: "Deny call" }).click();
  await entry.waitFor({ state: "detached" });
  assert.deepEqual(other.faults, []);
  await other.close();
  await tab.bringToFront();
  await answered(tab, "written down");
  assert.equal(await notes(), had);
  const state = await server.json(`/threads/${thread}/state`);
  assert.match(JSON.stringify(state.values.results), /not today/);
});

test("the inbox's keys decide what is shown and edited, and leave the keys of other views alone", async () => {
  const had = await notes();
  const thread = await ask(tab, "Please approve this note");
  await tab.getByRole("button", { name: "Approve", exact: true }).waitFor();
  const entry = await inInbox(tab, thread);
  await tab.keyboard.press("g");
  await tab.keyboard.press("a");
  await tab.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
  assert.ok(await waitingIn(thread), "G then A approves no call");
  await inInbox(tab, thread);
  await entry.getByRole("button", { name: "Edit", exact: true }).click();
  await entry.getByLabel("text").fill("Remember the edit");
  await entry.getByRole("button", { name: "Approve as edited" }).focus();
  await tab.keyboard.press("a");
  await entry.waitFor({ state: "detached" });
  await go(tab, `chat/${thread}`);
  await answered(tab, "written down");
  assert.match((await notes()).slice(had.length), /Remember the edit/);
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
  await tab.locator(".notice.bad").getByText(/no open request has this ID/).waitFor();
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


test("a call that follows what strangers wrote says where that came from", async () => {
  await ask(tab, "Please look, and use post");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.getByText("asker wants to post a parcel").waitFor();
  await card.getByText("asker.post").waitFor();
  await card.locator(".warn").getByText(/Untrusted content led to this call: .*asker/).waitFor();
  await inspect(tab, "a tainted call");
  assert.doesNotMatch(await deeds(), /post a lamp/);
  await card.getByRole("button", { name: "Approve", exact: true }).click();
  await answered(tab, "written down");
  assert.match(await deeds(), /post a lamp/);
  await openActivity(tab);
  const call = tab.locator(".call").filter({ hasText: "Post a parcel" });
  await call.locator("summary").click();
  await call.locator("code").getByText("asker.post").waitFor();
  await go(tab, "agents/mcp_agent_asker");
  await tab.getByRole("region", { name: "Tools" }).getByRole("row").filter({ hasText: "Post a parcel" }).locator("code").getByText("post", { exact: true }).waitFor();
});

test("a form has the fields and choices of its schema, and sends what was chosen", async () => {
  await ask(tab, "Please use order now");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.getByText("Where to?").waitFor();
  await inspect(tab, "a form");
  assert.deepEqual(await card.getByLabel("Speed").locator("option").allInnerTexts(), ["Choose…", "Fast", "Slow"]);
  // What the schema wants is asked for before anything is sent.
  await card.getByRole("button", { name: "Send" }).click();
  assert.ok(await card.getByLabel("City").evaluate((one) => !one.checkValidity()));
  await card.getByLabel("City").fill("Brno");
  await card.getByLabel("Speed").selectOption("Fast");
  await card.getByLabel("Boxes").fill("3");
  await card.getByLabel("ribbon").check();
  await card.getByLabel("wax").check();
  await card.getByLabel("Gift").check();
  await card.getByRole("button", { name: "Send" }).click();
  await answered(tab, "written down");
  const [, given] = /order accept (.*)/.exec(await deeds());
  assert.deepEqual(JSON.parse(given), { city: "Brno", speed: "f", boxes: 3, extras: ["ribbon", "wax"], gift: true });
});

test("a form is declined from the inbox", async () => {
  const thread = await ask(tab, "Please use order now");
  await tab.getByRole("region", { name: "Waiting for you" }).waitFor();
  const entry = await inInbox(tab, thread);
  await entry.getByRole("button", { name: "Decline" }).click();
  await entry.waitFor({ state: "detached" });
  await go(tab, `chat/${thread}`);
  await answered(tab, "written down");
  assert.match(await deeds(), /order decline/);
});

test("an address that a server sends one to is shown whole before it is opened", async () => {
  await ask(tab, "Please use pay now");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  const link = card.getByRole("link", { name: "https://bank.example/pay?order=7" });
  assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
  await inspect(tab, "an address");
  await card.getByRole("button", { name: "Done" }).click();
  await answered(tab, "written down");
  assert.match(await deeds(), /pay accept/);
});

test("an answered question leaves the others open, and a second answer waits for the first", async () => {
  await ask(tab, "Please do both");
  const cards = tab.getByRole("region", { name: "Waiting for you" });
  await cards.nth(1).waitFor();
  model.hold();
  const city = tab.getByLabel("City");
  await tab.getByRole("button", { name: "Approve", exact: true }).click();
  await cards.nth(1).waitFor({ state: "detached" });
  await city.fill("Brno");
  await tab.locator('.messages[aria-busy="true"]').waitFor();
  const task = tab.getByRole("list", { name: "Tasks" }).getByRole("listitem").filter({ hasText: "Please use order." });
  await task.getByText("waiting for you").waitFor();
  assert.equal(await city.inputValue(), "Brno");
  assert.ok(await city.evaluate((one) => one === document.activeElement));
  await tab.getByLabel("Speed").selectOption("Fast");
  await tab.getByRole("button", { name: "Send" }).click();
  await cards.waitFor({ state: "detached" });
  model.release();
  await answered(tab, "written down");
  assert.match(await deeds(), /order accept .*Brno/);
  assert.equal(await cards.count(), 0);
});

test("every decision of a long turn stays after a refresh", async () => {
  const thread = await ask(tab, "Please approve eleven notes");
  const decided = tab.locator(".decided");
  for (let number = 1; number <= 11; number += 1) {
    await tab.getByRole("button", { name: "Approve", exact: true }).click();
    await decided.nth(number - 1).waitFor();
  }
  await answered(tab, "written down");
  const elsewhere = await server.json(`/v1/approvals/history?thread=${thread}`);
  assert.equal(elsewhere.requests.length, 11);
  await tab.reload();
  await answered(tab, "written down");
  await decided.nth(10).waitFor();
  assert.equal(await decided.count(), 11);
});

test("a call of unknown outcome is decided by a person", async () => {
  await ask(tab, "Please use vanish now");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.getByText(/its outcome is unknown/).waitFor();
  await inspect(tab, "an unknown outcome");
  await card.getByRole("button", { name: "Send it again" }).click();
  await answered(tab, "written down");
  assert.match(await deeds(), /vanish/);
});

test("in the inbox, too, a decision that comes too late says so and is gone", async () => {
  const had = await notes();
  const { thread_id } = await server.json("/threads", {});
  await server.json(`/threads/${thread_id}/runs/wait`, { assistant_id: "swarm", input: { question: "Please approve this note" } });
  const entry = await inInbox(tab, thread_id);
  await tab.route("**/v1/approvals/*", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await server.json(`/v1/approvals/${route.request().url().split("/").at(-1)}/deny`, {});
    await route.continue();
  });
  await entry.getByRole("button", { name: "Approve", exact: true }).click();
  await tab.locator(".notice.bad").getByText(/no open request has this ID/).waitFor();
  await entry.waitFor({ state: "detached" });
  await tab.getByRole("button", { name: "Decided" }).click();
  await tab.getByRole("region", { name: "Decisions" }).getByRole("row").filter({ has: tab.locator(`a[href="#/chat/${thread_id}"]`) }).getByText("denied").waitFor();
  assert.equal(await notes(), had);
  tab.faults = tab.faults.filter((fault) => !fault.includes("409"));
});
