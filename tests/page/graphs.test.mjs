/** X11, S3.13: graphs of a program's own on the page: started by a form, drawn with the node that runs, asked, shown and followed. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { go, inspect, open } from "./browser.mjs";
import { setStage } from "./stage.mjs";

const SIZES = [[1440, 900], [1024, 768], [390, 844]];

/** Opens a graph from the list of graphs. */
async function openGraph(tab, name) {
  await go(tab, "graphs");
  await tab.getByRole("main").getByRole("link", { name }).click();
  await tab.getByRole("img", { name: new RegExp(`^Graph ${name}`) }).waitFor();
}

/** Sends the form of a graph, and returns the thread that it began. */
async function start(tab, action = "Start") {
  await tab.getByRole("button", { name: action, exact: true }).click();
  await tab.waitForURL(/#\/chat\/[0-9a-f-]{36}/);
  return tab.url().split("/").at(-1);
}

const drawing = (tab, standing) => tab.getByRole("img", { name: standing });
const field = (tab, name) => tab.getByRole("region", { name: "State" }).locator(`dt:has-text("${name}") + dd`);

/** Looks at views at every width in both themes. */
async function everywhere(browser, url, views) {
  for (const [width, height] of SIZES) {
    for (const theme of ["light", "dark"]) {
      const tab = await open(browser, url, { width, height, theme });
      for (const [view, shown] of views) {
        await go(tab, view);
        await shown(tab).waitFor();
        await inspect(tab, `${view} at ${width}, ${theme}`);
        if (process.env.PICTURES) await tab.screenshot({ path: `${process.env.PICTURES}/${view.replace(/\W/g, "-").slice(0, 14)}-${width}-${theme}.png` });
      }
      assert.deepEqual(tab.faults, []);
      await tab.context().close();
    }
  }
}

describe("an order", () => {
  let server, browser, tab;
  setStage({ example: "order" }, (stage) => ({ server, browser, tab } = stage));

  async function ordered(shown, cents) {
    await openGraph(shown, "order");
    await shown.getByLabel("item").fill("a globe");
    await shown.getByLabel("cents").fill(String(cents));
    return start(shown);
  }

  test("it is started by the form of its input, and its state is shown by its schema", async () => {
    await openGraph(tab, "order");
    await tab.getByText("Orders one thing and pays for it").waitFor();
    await tab.getByText("above 10,000 a person approves it").waitFor();
    await tab.getByLabel("item").fill("a map");
    await tab.reload();
    assert.equal(await tab.getByLabel("item").inputValue(), "a map");
    const thread = await ordered(tab, 5_000);
    await field(tab, "log").getByText("a globe for 5000 cents, paid").waitFor();
    assert.equal(await field(tab, "cents").innerText(), "5000");
    await tab.getByRole("button", { name: "Graph", exact: true }).click();
    await drawing(tab, /check: done.*pay: done/).waitFor();
    await openGraph(tab, "order");
    assert.equal(await tab.getByLabel("item").inputValue(), "");
    await go(tab, "threads");
    const row = tab.locator(`.row:has(a[href="#/chat/${thread}"])`);
    await row.getByText("a globe").waitFor();
    await row.locator(".chip").getByText("order").waitFor();
    await go(tab, `chat/${thread}`);
    await tab.getByText("Start another run in this thread").click();
    await tab.getByLabel("item").fill("a lamp");
    await tab.getByLabel("cents").fill("7");
    await tab.getByRole("button", { name: "Start", exact: true }).click();
    await field(tab, "log").getByText("a lamp for 7 cents, paid").waitFor();
  });

  test("what it asks is approved where the thread is, and in the inbox", async () => {
    const thread = await ordered(tab, 25_000);
    const card = tab.getByRole("region", { name: "Waiting for you" });
    await card.getByText("payments.pay").waitFor();
    await card.getByText("It costs more than 100.00.").waitFor();
    await tab.getByRole("button", { name: "Graph", exact: true }).click();
    await drawing(tab, /approve: waiting for you/).waitFor();
    await card.getByRole("button", { name: "Approve" }).click();
    await field(tab, "log").getByText("approved, paid").waitFor();
    await drawing(tab, /approve: done.*pay: done/).waitFor();
    await tab.locator('.messages[aria-busy="false"]').waitFor();
    assert.equal((await server.json(`/threads/${thread}`)).status, "idle");
    const denied = await ordered(tab, 30_000);
    await card.waitFor();
    await go(tab, "inbox");
    const entry = tab.locator("article").filter({ has: tab.locator(`a[href="#/chat/${denied}"]`) });
    await entry.getByText("30000").waitFor();
    await entry.getByRole("button", { name: "Deny", exact: true }).click();
    await entry.getByLabel("Note for the agent").fill("too much");
    await entry.getByRole("button", { name: "Deny call" }).click();
    await entry.waitFor({ state: "detached" });
    await go(tab, `chat/${denied}`);
    await field(tab, "log").getByText("denied: too much").waitFor();
  });

  test("its steps, trace, replay and graph are shown, and a branch begins at a step with an edited field", async () => {
    const thread = await ordered(tab, 25_000);
    await tab.getByRole("button", { name: "Approve" }).click();
    await field(tab, "receipt").getByText(/^\w{8}$/).waitFor();
    await go(tab, `trace/${thread}`);
    await tab.getByRole("treeitem").filter({ hasText: "pay" }).first().waitFor();
    await go(tab, `replay/${thread}`);
    await tab.getByText(/each committed the same bytes/).waitFor();
    await go(tab, `graph/${thread}`);
    await drawing(tab, /pay: done/).waitFor();
    await go(tab, `inspect/${thread}`);
    await tab.locator(".step-row").filter({ hasText: "approve → pay" }).click();
    await tab.getByRole("button", { name: "Run from here" }).click();
    await tab.getByLabel("Edit a field").selectOption("item");
    await tab.getByLabel("New value of item").fill('"a lamp"');
    await tab.getByRole("button", { name: "Start branch" }).click();
    await field(tab, "item").getByText("a lamp").waitFor();
    await field(tab, "log").getByText("approved, paid").waitFor();
  });

  test("it looks right at every width in both themes", async () => {
    const waiting = await ordered(tab, 25_000);
    await tab.getByRole("region", { name: "Waiting for you" }).waitFor();
    const done = await ordered(tab, 5);
    await field(tab, "receipt").getByText(/^\w{8}$/).waitFor();
    await everywhere(browser, server.url, [
      ["graphs", (shown) => shown.getByRole("main").getByRole("link", { name: "order" })],
      ["graphs/order", (shown) => drawing(shown, /^Graph order/)],
      [`chat/${waiting}`, (shown) => shown.getByRole("region", { name: "Waiting for you" })],
      [`graph/${waiting}`, (shown) => drawing(shown, /approve: waiting for you/)],
      [`chat/${done}`, (shown) => field(shown, "receipt")],
      [`inspect/${done}`, (shown) => shown.locator(".step-row").first()],
      ["chat", (shown) => shown.getByText("Or start a graph")],
    ]);
  });
});

describe("a research", () => {
  let model, server, browser, tab;
  setStage({ example: "research" }, (stage) => ({ model, server, browser, tab } = stage));

  async function researched(shown) {
    await openGraph(shown, "research");
    await shown.getByLabel("topic").fill("the earth");
    for (const [index, name] of ["Bruno", "Galilei", "Kepler"].entries()) {
      if (index > 0) await shown.getByRole("button", { name: "Add to sources" }).click();
      await shown.getByLabel(`sources ${index + 1}`, { exact: true }).fill(name);
    }
    return start(shown);
  }

  test("its list is filled entry by entry, its question answered by its schema, and the node that runs is live", async () => {
    await researched(tab);
    const card = tab.getByRole("region", { name: "Waiting for you" });
    await card.getByText("How long?").waitFor();
    await tab.getByRole("button", { name: "Graph", exact: true }).click();
    await drawing(tab, /choose: waiting for you.*/).waitFor();
    await drawing(tab, /source: done × 3/).waitFor();
    model.hold();
    await card.getByLabel("Length").selectOption("short");
    await card.getByRole("button", { name: "Answer" }).click();
    await drawing(tab, /report: running/).waitFor();
    await tab.getByRole("status").getByText("Running report").waitFor();
    // What was seen before a reload is seen after it.
    await tab.reload();
    await tab.getByRole("button", { name: "Graph", exact: true }).click();
    await drawing(tab, /report: running/).waitFor();
    model.release();
    await field(tab, "report").getByText("The earth moves.").waitFor();
    await drawing(tab, /report: done/).waitFor();
  });

  test("it looks right at every width in both themes", async () => {
    const waiting = await researched(tab);
    await tab.getByRole("region", { name: "Waiting for you" }).waitFor();
    await everywhere(browser, server.url, [
      ["graphs/research", (shown) => drawing(shown, /^Graph research/)],
      [`chat/${waiting}`, (shown) => shown.getByRole("region", { name: "Waiting for you" })],
      ["inbox", (shown) => shown.getByText("How long?").first()],
      [`graph/${waiting}`, (shown) => drawing(shown, /choose: waiting for you/)],
    ]);
  });
});

describe("a chat", () => {
  let model, server, browser, tab;
  setStage({ example: "chat" }, (stage) => ({ model, server, browser, tab } = stage));

  const answer = (shown, text) => shown.locator("article.answer").filter({ hasText: text });

  test("a message is answered word by word, and the next one follows it", async () => {
    await openGraph(tab, "chat");
    model.hold();
    await tab.getByLabel("Your message").fill("How is the weather in Padua?");
    await start(tab);
    model.release(12);
    await answer(tab, "It is warm and").first().waitFor();
    await tab.getByRole("button", { name: "Graph", exact: true }).click();
    await drawing(tab, /agent: running/).waitFor();
    model.release();
    await answer(tab, "at 21 degrees.").first().waitFor();
    await drawing(tab, /agent: done/).waitFor();
    assert.equal(await tab.locator("article.answer").count(), 1);
    await tab.getByLabel("Your message").fill("And tomorrow?");
    await tab.getByRole("button", { name: "Send", exact: true }).click();
    await tab.locator(".message.user").nth(1).waitFor();
    await answer(tab, "at 21 degrees.").nth(1).waitFor();
  });

  test("a run is stopped and continued", async () => {
    await openGraph(tab, "chat");
    model.hold();
    await tab.getByLabel("Your message").fill("How is the weather?");
    await start(tab);
    model.release(12);
    await answer(tab, "It is").first().waitFor();
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByText("The run was stopped.").waitFor();
    model.release();
    await tab.getByRole("button", { name: "Continue" }).click();
    await answer(tab, "at 21 degrees.").first().waitFor();
  });

  test("it looks right at every width in both themes", async () => {
    await openGraph(tab, "chat");
    await tab.getByLabel("Your message").fill("How is the weather in Padua?");
    const thread = await start(tab);
    await answer(tab, "at 21 degrees.").first().waitFor();
    await everywhere(browser, server.url, [
      ["graphs/chat", (shown) => drawing(shown, /^Graph chat/)],
      [`chat/${thread}`, (shown) => answer(shown, "at 21 degrees.").first()],
      [`graph/${thread}`, (shown) => drawing(shown, /agent: done/)],
    ]);
  });
});
