/** S3.13, X7: health and usage: how threads stand, what failed, what calls took and cost, and the alerts that stand. */

import { test } from "node:test";
import { answered, ask, go, inspect } from "./browser.mjs";
import { setStage } from "./stage.mjs";

const PRICES = `[models.prices.scripted]
input_per_mtok = 2000.0
output_per_mtok = 8000.0
`;

let model, server, tab;
setStage({ further: ["absent"], settings: PRICES }, (stage) => ({ model, server, tab } = stage));

test("tokens and cost are shown by day, agent, model and tenant", async () => {
  await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, "usage");
  const usage = tab.getByRole("region", { name: "Usage" });
  await usage.getByRole("img", { name: /^Tokens by day, 7 days/ }).waitFor();
  await usage.getByText("By day", { exact: true }).click();
  await usage.getByRole("list", { name: "By day" }).locator("li").first().waitFor();
  await usage.getByRole("row").filter({ hasText: "files" }).getByText(/^\$0\.\d+/).waitFor();
  await usage.getByRole("row").filter({ hasText: "scripted" }).getByText(/^\$0\.\d+/).waitFor();
  await usage.getByText("Tenant default").waitFor();
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
  await tab.locator(".tile").filter({ hasText: "runs failed" }).getByText("1", { exact: true }).waitFor();
});

test("runs in progress are counted with the worker that drives them", async () => {
  model.hold();
  const thread = await ask(tab, "Tell a slow story");
  model.release(8);
  await tab.getByText("word8").first().waitFor();
  await go(tab, "health");
  await tab.locator(".tile").filter({ hasText: "runs in progress" }).getByText("1", { exact: true }).waitFor();
  await tab.getByText(/drives 1 run/).waitFor();
  model.release();
  await go(tab, `chat/${thread}`);
  await answered(tab, "word40");
});
