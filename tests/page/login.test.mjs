/** S3.13, S3.04: who comes in, with what, and what they may have. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, ask, confirm, go, inspect, open } from "./browser.mjs";
import { startServer } from "./server.mjs";
import { setStage } from "./stage.mjs";

let model, browser, tab;
setStage({ env: { PERIHELION_SERVE_MAX_RUNS: "7", PERIHELION_SERVE_MAX_DAILY_TOKENS: "1000000" } }, (stage) => ({ model, browser, tab } = stage));

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
    await guest.getByRole("alert").getByText("Invalid or expired key").waitFor();
    await enter("open-sesame-and-come-in");
    const thread = await ask(guest, "Hello?");
    await answered(guest, "Hello from");
    await go(guest, `trace/${thread}`);
    await guest.getByText(/chat scripted/).first().waitFor();
    const saved = guest.waitForEvent("download");
    await guest.getByRole("button", { name: "Download trace" }).click();
    assert.match((await saved).suggestedFilename(), /^trace-.*\.html$/);
    await guest.getByRole("button", { name: "Log out" }).click();
    await guest.getByLabel("API key").waitFor();
    assert.deepEqual(guest.faults.filter((fault) => !fault.includes("401")), []);
    await guest.context().close();
  } finally {
    await guarded.stop();
  }
});

test("a person registers, logs in and logs out", async () => {
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
    await guest.getByText(/chat scripted/).first().waitFor();
    await guest.getByRole("button", { name: "Log out" }).click();
    await enter("Log in");
    await guest.getByRole("heading", { name: "Trace" }).waitFor();
    await go(guest, "chat");
    await guest.locator(`.recent a[href="#/chat/${thread}"]`).waitFor();
    assert.deepEqual(guest.faults.filter((fault) => !fault.includes("401")), []);
    await guest.context().close();
  } finally {
    await guarded.stop();
  }
});


test("what one person typed is not shown to the next one in the same browser", async () => {
  const guarded = await startServer({ model: model.url, token: "open-sesame-and-come-in" });
  try {
    const guest = await open(browser, guarded.url);
    const enter = async (name, button) => {
      await guest.getByLabel("Name").fill(name);
      await guest.getByLabel("Password").fill("correct horse battery staple");
      await guest.getByRole("button", { name: button }).click();
    };
    const question = guest.getByLabel("Your question");
    const expire = async () => {
      await guest.context().clearCookies();
      await guest.reload();
      await guest.getByLabel("Name").waitFor();
    };
    await enter("ada", "Register");
    await question.fill("What does Ada earn?");
    await expire();
    await enter("ada", "Log in");
    await question.waitFor();
    assert.equal(await question.inputValue(), "What does Ada earn?");
    await expire();
    await enter("bob", "Register");
    await question.waitFor();
    assert.equal(await question.inputValue(), "");
    assert.deepEqual(guest.faults.filter((fault) => !fault.includes("401")), []);
    await guest.context().close();
  } finally {
    await guarded.stop();
  }
});

test("the one who manages sees the users, changes their scopes and shuts one out", async () => {
  const guarded = await startServer({ model: model.url, token: "open-sesame-and-come-in" });
  try {
    const body = JSON.stringify({ name: "ada", password: "correct horse battery staple" });
    const registered = await fetch(`${guarded.url}/v1/auth/register`, { method: "POST", headers: { "content-type": "application/json" }, body });
    assert.equal(registered.status, 200);
    const owner = await open(browser, `${guarded.url}/#/account`);
    await owner.getByLabel("API key").fill("open-sesame-and-come-in");
    await owner.getByRole("button", { name: "Use the key" }).click();
    const user = owner.getByRole("region", { name: "User list" }).getByRole("row").filter({ hasText: "ada" });
    await user.waitFor();
    await owner.getByText("New user").click();
    await owner.getByLabel("User name").fill("Grace");
    await owner.getByLabel("Password").fill("another horse battery staple");
    await owner.getByRole("region", { name: "Users" }).getByLabel("approve").uncheck();
    await inspect(owner, "users");
    await owner.getByRole("button", { name: "Add user" }).click();
    const other = owner.getByRole("region", { name: "User list" }).getByRole("row").filter({ hasText: "grace" });
    await other.getByText("read, run", { exact: true }).waitFor();
    const grace = JSON.stringify({ name: "grace", password: "another horse battery staple" });
    const entered = await fetch(`${guarded.url}/v1/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body: grace });
    assert.deepEqual((await entered.json()).scopes, ["read", "run"]);
    await other.getByRole("button", { name: "Change scopes of grace" }).click();
    const scopes = owner.getByRole("dialog", { name: "Scopes of grace" });
    await scopes.getByLabel("run").uncheck();
    await scopes.getByLabel("manage").check();
    await inspect(owner, "the scopes of a user");
    await scopes.getByRole("button", { name: "Save" }).click();
    await other.getByText("read, manage", { exact: true }).waitFor();
    const changed = await fetch(`${guarded.url}/v1/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body: grace });
    assert.deepEqual((await changed.json()).scopes, ["read", "manage"]);
    await owner.reload();
    await owner.getByRole("region", { name: "Audit" }).getByRole("row").filter({ hasText: "user.scopes_changed" }).getByText("read, manage").waitFor();
    await user.getByRole("button", { name: "Remove access" }).click();
    await confirm(owner, "Remove access");
    await user.waitFor({ state: "detached" });
    const again = await fetch(`${guarded.url}/v1/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body });
    assert.equal(again.status, 401);
    assert.deepEqual(owner.faults.filter((fault) => !fault.includes("401")), []);
    await owner.context().close();
  } finally {
    await guarded.stop();
  }
});

test("what a tenant may have is shown with what was taken of it", async () => {
  await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await go(tab, "account");
  const limits = tab.getByRole("region", { name: "Tenant limits" });
  await limits.getByRole("row").filter({ hasText: "Concurrent runs" }).getByText("7", { exact: true }).waitFor();
  await limits.getByText("serve.max_daily_tokens").waitFor();
  const tokens = limits.getByRole("row").filter({ hasText: "Tokens today" });
  await tokens.getByText("1,000,000").waitFor();
  const used = async (row) => Number((await row.locator("td").nth(1).innerText()).replaceAll(",", ""));
  assert.ok((await used(tokens)) > 0);
  await inspect(tab, "limits");
  await go(tab, "usage");
  const budget = tab.getByRole("region", { name: "Tenant budgets" }).getByRole("row").filter({ hasText: "Tokens today" });
  await budget.getByText("1,000,000").waitFor();
  assert.ok((await used(budget)) > 0);
  assert.equal(await budget.getByRole("meter").getAttribute("aria-label"), "0 % used");
  await inspect(tab, "budgets");
});
