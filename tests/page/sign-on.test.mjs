/** S3.04: single sign-on at a real OpenID provider. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { answered, ask, go, inspect, open } from "./browser.mjs";
import { freePort, startServer } from "./server.mjs";
import { setStage } from "./stage.mjs";

let model, browser;
setStage({}, (stage) => ({ model, browser } = stage));

/** Starts a server and the provider that it trusts. */
async function startBoth() {
  const port = await freePort();
  const oidc = (url) => ({
    issuer: `http://127.0.0.1:${port}`,
    client_id: "perihelion",
    client_secret: "the secret of the client",
    public_url: url,
    name: "Acme",
    roles_claim: "groups",
    roles: { ops: ["read", "run", "manage"] },
  });
  const server = await startServer({ model: model.url, env: (url) => ({ PERIHELION_SERVE_OIDC: JSON.stringify(oidc(url)) }) });
  const script = new URL("provider/provider.mjs", import.meta.url).pathname;
  const provider = spawn(process.execPath, [script, `${port}`, server.url], { stdio: ["ignore", "pipe", "ignore"] });
  await once(provider.stdout, "data");
  async function stop() {
    const ended = once(provider, "exit");
    provider.kill();
    await Promise.all([ended, server.stop()]);
  }
  return { server, stop };
}

/** Logs in at the provider, which asks for consent. */
async function enter(tab, name) {
  await tab.getByRole("link", { name: "Log in with Acme" }).click();
  await tab.locator('input[name="login"]').fill(name);
  await tab.locator('input[name="password"]').fill("any");
  await tab.getByRole("button", { name: "Sign-in" }).click();
  await tab.getByRole("button", { name: "Continue" }).click();
}

test("people log in at their provider, work with the scopes of their roles, and log out of both", async () => {
  const { server, stop } = await startBoth();
  try {
    const tab = await open(browser, `${server.url}/#/account`);
    await tab.getByRole("link", { name: "Log in with Acme" }).waitFor();
    assert.equal(await tab.getByLabel("Password").count(), 0, "nobody has a password");
    assert.equal(await tab.getByRole("button", { name: "Register" }).count(), 0);
    await inspect(tab, "the login at a provider");
    await enter(tab, "ops@example.org");
    await tab.waitForURL(`${server.url}/#/account`);
    await tab.getByText("ops@example.org").first().waitFor();
    // The role gives the scope to manage.
    await tab.getByRole("heading", { name: "Users" }).waitFor();
    const kept = await tab.context().cookies();
    const session = kept.find(({ name }) => name === "perihelion_session");
    assert.deepEqual([session.httpOnly, session.sameSite], [true, "Strict"]);
    assert.ok(!kept.some(({ name }) => name.startsWith("perihelion_login")));
    await ask(tab, "Hello?");
    await answered(tab, "Hello from");
    await tab.getByRole("button", { name: "Log out" }).click();
    await tab.getByRole("button", { name: "Yes, sign me out" }).click();
    await tab.getByRole("link", { name: "Log in with Acme" }).waitFor();
    await enter(tab, "ann@example.org");
    await go(tab, "account");
    await tab.getByText("ann@example.org").first().waitFor();
    assert.equal(await tab.getByRole("heading", { name: "Users" }).count(), 0);
    await tab.context().close();
  } finally {
    await stop();
  }
});

test("a login that the user cancels says so, and can be tried again", async () => {
  const { server, stop } = await startBoth();
  try {
    const tab = await open(browser, server.url);
    await tab.getByRole("link", { name: "Log in with Acme" }).click();
    await tab.getByRole("link", { name: "[ Cancel ]" }).click();
    await tab.getByRole("alert").getByText("The login was cancelled.").waitFor();
    await enter(tab, "ann@example.org");
    await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
    await tab.context().close();
  } finally {
    await stop();
  }
});
