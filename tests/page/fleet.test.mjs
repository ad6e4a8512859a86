/** S3.13, X7: health, usage and runs: how threads stand, what failed, what calls took and cost, and the alerts that stand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, ask, go, inspect } from "./browser.mjs";
import { setStage } from "./stage.mjs";

const PRICES = `[models.prices.scripted]
input_per_mtok = 2000.0
output_per_mtok = 8000.0
`;

let model, server, tab;
setStage({ further: ["absent"], settings: PRICES }, (stage) => ({ model, server, tab } = stage));

test("tokens and cost are shown by day, agent, model, user and tenant", async () => {
  await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, "usage");
  const usage = tab.getByRole("region", { name: "Usage" });
  await usage.getByRole("img", { name: /^Tokens by day, 7 days/ }).waitFor();
  await usage.getByText("By day", { exact: true }).click();
  await usage.getByRole("list", { name: "By day" }).locator("li").first().waitFor();
  await usage.getByRole("row").filter({ hasText: "files" }).getByText(/^\$0\.\d+/).waitFor();
  await usage.getByRole("row").filter({ hasText: "scripted" }).getByText(/^\$0\.\d+/).waitFor();
  await usage.getByRole("row").filter({ hasText: "no user" }).getByText(/^\$0\.\d+/).waitFor();
  await usage.getByText("Tenant default").waitFor();
  await usage.locator("rect.part-2").first().waitFor({ state: "attached" });
  await usage.getByLabel("Columns by").selectOption("model");
  await usage.locator(".legend").getByText("scripted", { exact: true }).waitFor();
  assert.equal(await usage.locator("rect.part-2").count(), 0);
  await tab.getByRole("region", { name: "Tenants", exact: true }).getByRole("row").filter({ hasText: "default" }).getByText(/^\$0\.\d+/).waitFor();
  await inspect(tab, "the usage");
});

test("a server that is not there is an alert, and stays one until somebody looks after it", async () => {
  await go(tab, "health");
  const alert = tab.getByRole("region", { name: "Alerts" }).getByRole("alert");
  await alert.getByText(/MCP server absent: /).waitFor();
  await tab.reload();
  await alert.getByText(/MCP server absent: /).waitFor();
  await inspect(tab, "alerts");
});

test("a run that failed is counted, and listed with its reason and its thread", async () => {
  model.isBroken = true;
  const thread = await ask(tab, "Please break now");
  await tab.locator(".messages .failure").waitFor();
  model.isBroken = false;
  await go(tab, "health");
  const failed = tab.getByRole("listitem").filter({ has: tab.locator(`a[href="#/chat/${thread}"]`) });
  await failed.getByText(/the model is broken/).waitFor();
  await tab.getByRole("region", { name: "Runs" }).locator(".tile").filter({ hasText: "failed" }).getByText("1", { exact: true }).waitFor();
});

test("runs in progress are counted with the worker that drives them", async () => {
  model.hold();
  const thread = await ask(tab, "Tell a slow story");
  model.release(8);
  await tab.getByText("word8").first().waitFor();
  await go(tab, "health");
  await tab.getByRole("region", { name: "Runs" }).locator(".tile").filter({ hasText: "in progress" }).getByText("1", { exact: true }).waitFor();
  await tab.getByText(/drives 1 run/).waitFor();
  model.release();
  await go(tab, `chat/${thread}`);
  await answered(tab, "word40");
});

test("runs of all threads are listed, filtered by the address, compared, and opened as a trace", async () => {
  for (const question of ["Where is the lynx?", "Where is the otter?"]) {
    await ask(tab, question);
    await answered(tab, "Hello from");
  }
  await go(tab, "runs");
  const list = tab.getByRole("region", { name: "Runs" });
  const row = (question) => list.getByRole("row").filter({ hasText: question });
  await row("Where is the lynx?").getByRole("img", { name: "done" }).waitFor();
  await row("Where is the lynx?").getByText(/\d (ms|s)$/).first().waitFor();
  await inspect(tab, "the runs");
  await tab.getByLabel("Status").selectOption("error");
  await row("Where is the lynx?").waitFor({ state: "detached" });
  await tab.waitForURL(/status=error/);
  await tab.getByLabel("Status").selectOption("");
  await row("Where is the lynx?").getByText(/^\$\d/).waitFor();
  for (const words of ["otters", "otter hello"]) {
    await tab.getByLabel("Search conversations").fill(words);
    await row("Where is the lynx?").waitFor({ state: "detached" });
    await row("Where is the otter?").waitFor();
  }
  await tab.getByLabel("Search conversations").fill("quagga");
  await tab.getByText("No matching runs").waitFor();
  await tab.getByLabel("Search conversations").fill("");
  await tab.getByText("More filters").click();
  await tab.getByLabel("Costs at least").fill("1000000");
  await tab.getByText("No matching runs").waitFor();
  await inspect(tab, "the filters of runs");
  await tab.getByLabel("Costs at least").fill("");
  await row("Where is the lynx?").waitFor();
  await row("Where is the lynx?").getByRole("checkbox").check();
  await row("Where is the otter?").getByRole("checkbox").check();
  await tab.getByRole("link", { name: "Compare" }).click();
  await tab.getByRole("region", { name: "Totals" }).waitFor();
  await go(tab, "runs");
  await row("Where is the otter?").getByRole("link", { name: "Trace" }).click();
  await tab.locator(".trace").getByText("Where is the otter?").first().waitFor();
});

test("filters are saved as a view, columns are chosen, and failed runs are retried together", async () => {
  model.isBroken = true;
  const thread = await ask(tab, "Please break twice");
  await tab.locator(".messages .failure").waitFor();
  model.isBroken = false;
  await go(tab, "runs?status=error");
  await tab.getByRole("button", { name: "Save view" }).click();
  await tab.getByRole("dialog").getByLabel("Name").fill("Failures");
  await tab.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await tab.getByText("Columns", { exact: true }).click();
  await tab.getByLabel("Tokens").uncheck();
  await go(tab, "runs");
  await tab.reload();
  const list = tab.getByRole("region", { name: "Runs" });
  const views = tab.getByRole("list", { name: "Saved views" });
  await views.getByRole("link", { name: "Failures" }).click();
  await tab.waitForURL(/status=error/);
  await list.getByRole("columnheader", { name: "Cost" }).waitFor();
  assert.equal(await list.getByRole("columnheader", { name: "Tokens" }).count(), 0);
  await inspect(tab, "a saved view");
  await list.getByRole("row").filter({ hasText: "Please break twice" }).getByRole("checkbox").check();
  await tab.getByRole("button", { name: "Retry 1" }).click();
  await tab.getByText("1 run started.").waitFor();
  await go(tab, `chat/${thread}`);
  await answered(tab, "Hello from");
  await go(tab, "runs");
  await views.getByRole("button", { name: "Delete the view Failures" }).click();
  await views.waitFor({ state: "detached" });
});

test("threads are found by the words of their conversations", async () => {
  const thread = await ask(tab, "Does it rain?");
  await answered(tab, "Hello from");
  await tab.getByLabel("Your question").fill("Please read the paper about umbrellas");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await answered(tab, "written down");
  await go(tab, "threads");
  await tab.getByLabel("Search threads").fill("umbrella");
  const found = tab.getByRole("region", { name: "In conversations" });
  await found.locator(`a[href="#/chat/${thread}"]`).waitFor();
  await inspect(tab, "found conversations");
  await tab.getByLabel("Search threads").fill("quagga");
  await tab.getByText("No matching threads").waitFor();
});

test("keys lead around, and their list says how", async () => {
  await go(tab, "health");
  await tab.getByRole("heading", { name: "Health" }).waitFor();
  await tab.keyboard.press("g");
  await tab.keyboard.press("i");
  await tab.getByRole("heading", { name: "Inbox" }).waitFor();
  await tab.keyboard.press("?");
  await tab.getByRole("dialog").getByText("Ask a question").waitFor();
  await inspect(tab, "the keys");
  await tab.keyboard.press("Escape");
  await tab.keyboard.press("c");
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
});
