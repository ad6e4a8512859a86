/** S3.13, S3.09, S3.04: decisions with edits, over many calls at once, by whom; keys, users, teams, servers' pins. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, ask, confirm, go, inspect, open } from "./browser.mjs";
import { startServer } from "./server.mjs";
import { setStage } from "./stage.mjs";

let model, server, browser, tab;
setStage({ further: ["greeter"] }, (stage) => ({ model, server, browser, tab } = stage));

const notes = () => readFile(join(server.home, "notes.jsonl"), "utf8").catch(() => "");

test("a call's arguments are edited before it is approved, and what is sent is the edit", async () => {
  const had = await notes();
  await ask(tab, "Please approve this note");
  const card = tab.getByRole("region", { name: "Waiting for you" });
  await card.getByRole("button", { name: "Edit", exact: true }).click();
  await card.getByLabel("text").fill("Remember the eggs");
  await card.locator(".change").getByText("eggs").waitFor();
  await card.getByRole("button", { name: "Edit as JSON" }).click();
  await card.getByLabel("Arguments").fill("[1]");
  await card.getByRole("button", { name: "Approve as edited" }).click();
  await card.getByRole("alert").getByText("Arguments must be an object").waitFor();
  await card.getByLabel("Arguments").fill('{"text": "Remember the bread"}');
  await inspect(tab, "edited arguments");
  await card.getByRole("button", { name: "Approve as edited" }).click();
  await answered(tab, "written down");
  const written = (await notes()).slice(had.length);
  assert.match(written, /Remember the bread/);
  assert.doesNotMatch(written, /milk/);
});

test("all calls that wait are decided together, and who decided stays", async () => {
  const had = await notes();
  const asked = await Promise.all([1, 2, 3].map(async () => {
    const { thread_id } = await server.json("/threads", {});
    await server.json(`/threads/${thread_id}/runs/wait`, { assistant_id: "swarm", input: { question: "Please approve this note" } });
    return thread_id;
  }));
  await go(tab, "inbox");
  await tab.locator(".inbox-entry").nth(2).waitFor();
  await tab.getByRole("button", { name: "Select all 3" }).click();
  await inspect(tab, "selected calls");
  await tab.getByRole("button", { name: "Approve 3" }).click();
  await confirm(tab, "Approve");
  await tab.getByText("All clear").waitFor();
  await tab.getByRole("button", { name: "Decided" }).click();
  const decided = tab.getByRole("region", { name: "Decisions" }).getByRole("row").filter({ hasText: "approved" });
  await decided.nth(2).waitFor();
  await decided.first().getByText("local").waitFor();
  await inspect(tab, "decisions");
  for (const thread of asked) await server.json(`/threads/${thread}/runs/wait`, { assistant_id: "swarm", input: null }).catch(() => {});
  assert.equal((await notes()).slice(had.length).match(/milk/g)?.length, 3);
});

test("a key is made, shown once, used by its tab, and revoked", async () => {
  const guarded = await startServer({ model: model.url });
  try {
    const owner = await open(browser, guarded.url);
    await go(owner, "account");
    const make = async (name) => {
      await owner.getByText("New key").click();
      await owner.getByLabel("Key name").fill(name);
      await owner.getByRole("button", { name: "Create key" }).click();
      await owner.locator(".made").filter({ hasText: name }).locator("code").waitFor();
      await owner.getByText("New key").click();
    };
    await owner.getByText("on this machine, without a login").waitFor();
    // From the first key on the server asks who is there.
    await make("mine");
    await owner.reload();
    await owner.getByText("by an API key").waitFor();
    await make("pipeline");
    await inspect(owner, "the account");
    const row = owner.getByRole("region", { name: "Keys" }).getByRole("row").filter({ hasText: "pipeline" });
    await row.getByRole("button", { name: "Revoke" }).click();
    await confirm(owner, "Revoke");
    await row.getByText("revoked").waitFor();
    await owner.reload();
    await owner.getByRole("region", { name: "Audit" }).getByText("key.revoked").first().waitFor();
    assert.deepEqual(owner.faults, []);
    await owner.context().close();
  } finally {
    await guarded.stop();
  }
});

test("a team is drawn, and its edit is shown beside what is kept before it is saved", async () => {
  await go(tab, "teams");
  await tab.getByRole("button", { name: "New team" }).click();
  await tab.getByLabel("Goal").fill("Keep an almanac");
  await tab.getByRole("button", { name: "Design" }).click();
  await tab.getByRole("img", { name: /Team almanac: reader with files/ }).waitFor();
  await inspect(tab, "the design of a team");
  await tab.getByRole("button", { name: "Save" }).click();
  const team = tab.locator(".card").filter({ hasText: "almanac" });
  await team.locator("summary").click();
  await team.getByRole("img", { name: /Team almanac/ }).waitFor();
  await team.getByRole("button", { name: "Edit" }).click();
  // The drawing and its buttons open the form of a member.
  await tab.getByRole("group", { name: "Members" }).getByRole("button", { name: "writer" }).click();
  const writer = tab.getByRole("group", { name: "Agent writer" });
  await writer.getByLabel("greeter").check();
  await tab.getByRole("dialog").getByRole("img", { name: /writer with notes and greeter/ }).waitFor();
  await writer.getByLabel("greeter").uncheck();
  await tab.getByRole("dialog").locator(".team .agent").first().click();
  await tab.getByRole("group", { name: "Agent reader" }).getByLabel("Goal").fill("Find every number in the paper");
  const changes = tab.getByRole("region", { name: "Changes" });
  await changes.locator(".new").filter({ hasText: "every" }).waitFor();
  await changes.locator(".old").filter({ hasText: "what" }).waitFor();
  await inspect(tab, "the edit of a team");
  await tab.getByRole("button", { name: "Save" }).click();
  await team.getByText("Version 2").waitFor({ state: "attached" });
  const kept = await server.json("/v1/teams/almanac");
  assert.equal(kept.version, 2);
  if (!(await team.evaluate((card) => card.open))) await team.locator("summary").click();
  await team.getByRole("row").filter({ hasText: "reader" }).getByText("files").waitFor();
  await team.getByRole("region", { name: "Versions" }).locator(".new").filter({ hasText: "every" }).waitFor();
  await team.getByRole("button", { name: "Delete" }).click();
  await team.waitFor({ state: "detached" });
});

test("a server that changed is in quarantine until a person approves what it says now", async () => {
  await go(tab, "agents");
  await tab.getByRole("row").filter({ hasText: "greets people" }).waitFor();
  await server.kill();
  await writeFile(join(server.home, "greeting.txt"), "Greets somebody, and reads all mail first.\n");
  await server.start();
  await tab.reload();
  await tab.getByRole("row").filter({ hasText: "greets people" }).getByRole("link", { name: "greeter" }).click();
  await tab.getByRole("button", { name: "Review changes" }).click();
  const changes = tab.getByRole("region", { name: "Changes of greeter" });
  await changes.getByText("reads all mail first").first().waitFor();
  await inspect(tab, "a server's changes");
  await changes.getByRole("button", { name: "Approve these changes" }).click();
  await tab.getByText("greeter is pinned as shown").waitFor();
  const again = await server.json("/v1/servers/greeter/changes");
  assert.deepEqual(again.changes, []);
});

test("agents are shown with how they stand, their tools and the rules around these", async () => {
  await go(tab, "agents");
  const agent = tab.locator(".view");
  await tab.getByRole("row").filter({ hasText: "keeps notes" }).waitFor();
  await inspect(tab, "the agents");
  await tab.getByRole("row").filter({ hasText: "keeps notes" }).getByRole("link", { name: "notes" }).click();
  await agent.getByText(/tools · (running|cached|stopped)/).waitFor();
  await agent.getByRole("row").filter({ hasText: "append_note" }).getByText("needs approval").waitFor();
  await inspect(tab, "an agent");
  const had = await notes();
  await tab.getByRole("button", { name: "Try append_note" }).click();
  const trial = tab.getByRole("dialog", { name: "Try Append a note" });
  await trial.getByText("This tool can change data").waitFor();
  await trial.getByLabel("text").fill("Remember the salt");
  await trial.getByRole("button", { name: "Call", exact: true }).click();
  await trial.getByRole("region", { name: "Result" }).getByText(/^Done in/).waitFor();
  await inspect(tab, "a call that tries a tool");
  assert.match((await notes()).slice(had.length), /Remember the salt/);
  await trial.getByRole("button", { name: "Close" }).click();
  await go(tab, "account");
  await tab.getByRole("region", { name: "Audit" }).getByRole("row").filter({ hasText: "tool.called" }).getByText("notes.append_note").waitFor();
  await go(tab, "agents/mcp_agent_notes");
  await tab.getByRole("button", { name: "Ask this agent" }).click();
  await tab.locator(".options > summary").filter({ hasText: "Agents" }).locator(".badge").getByText("1").waitFor();
});
