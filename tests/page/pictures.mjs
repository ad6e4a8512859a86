/**
 * Takes pictures of every view at three widths in both themes, as WebP, into the directory that is named: `make page-pictures`.
 *
 * Most are of the demo; what the demo has none of is of a server with a scripted model, or of the example `order`.
 */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { answered, ask, go, open, traceFromDisk } from "./browser.mjs";
import { startDemo, viewsOf } from "./demo.mjs";
import { startModel } from "./model.mjs";
import { startServer } from "./server.mjs";

const [directory] = process.argv.slice(2);
const SIZES = [[1440, 900], [1024, 768], [390, 844]];

/** Bytes that a picture may have; the first quality that keeps to it is taken, where 1 is without any loss. */
const MOST = 40_000;
const QUALITIES = [1, 0.86, 0.75, 0.6, 0.45, 0.3];

/** The token of the operator. */
const TOKEN = "open-sesame-and-come-in";

/** A model that is not there. */
const NOWHERE = "http://127.0.0.1:9/v1";

/** Views that the demo has nothing in, which others show. */
const EMPTY = new Set(["inbox", "graphs", "skills", "memory", "evaluations"]);

await rm(directory, { recursive: true, force: true });
await mkdir(directory, { recursive: true });
const { server: demo, browser, table, chart } = await startDemo();
const studio = await browser.newPage();

/** Writes a picture as WebP, which a browser makes of what it took. */
async function picture(tab, name) {
  const taken = (await tab.screenshot()).toString("base64");
  const address = await studio.evaluate(async ([data, most, qualities]) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    const written = (quality) => canvas.toDataURL("image/webp", quality);
    return written(qualities.find((quality) => written(quality).length * 0.75 <= most) ?? qualities.at(-1));
  }, [taken, MOST, QUALITIES]);
  await writeFile(join(directory, `${name}.webp`), Buffer.from(address.split(",")[1], "base64"));
}

/** Takes a picture of a trace as it is saved. */
async function savedTrace() {
  const address = `${demo.url}/v1/threads/${table}/trace/page`;
  const given = await (await fetch(address)).text();
  const body = process.env.PAGE_FROM_DISK ? await traceFromDisk(given) : given;
  const tab = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  await tab.route(address, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  await tab.goto(address);
  await tab.getByRole("treeitem").nth(4).waitFor();
  await picture(tab, "saved-trace");
  await tab.close();
}

/** Opens what stands above a view, takes its picture, and closes it. */
async function above(tab, name, how, address, open, shown) {
  await go(tab, address);
  await open(tab);
  await shown(tab).waitFor();
  await tab.waitForTimeout(300);
  await picture(tab, `${name}-${how}`);
  await tab.keyboard.press("Escape");
}

/** Takes pictures of views of a server at every width in both themes; `further` does more in the same tab, which `prepare` makes ready. */
async function pictures(url, views, further = async () => {}, prepare = async () => {}) {
  for (const [width, height] of SIZES) {
    for (const theme of ["light", "dark"]) {
      const tab = await open(browser, url, { width, height, theme });
      await prepare(tab);
      for (const [name, address, shown] of views) {
        await go(tab, address);
        await shown(tab).waitFor();
        await tab.waitForTimeout(300);
        await picture(tab, `${name}-${width}-${theme}`);
      }
      await further(tab, `${width}-${theme}`);
      await tab.context().close();
    }
  }
}

/** The demo while it works. */
async function working(tab, how) {
  await ask(tab, "Draw how many clock changes there were in each year since 2000.");
  await tab.locator(".call").nth(2).waitFor();
  await picture(tab, `working-${how}`);
  await tab.locator('.messages[aria-busy="false"]').waitFor();
}

/** Returns the address of a passage of a document. */
async function passage() {
  const { hits: [{ document, start, end }] } = await demo.json("/v1/documents/search?text=agent");
  return `documents/${document}?start=${start}&end=${end}`;
}

/** What stands above the views of the demo, a document at a quote, the demo while it works, and what is there while the server is not. */
async function aboveDemo(tab, how) {
  const dialog = (tab) => tab.getByRole("dialog").last();
  await above(tab, "palette", how, `chat/${table}`, async (tab) => {
    await tab.locator("article.answer").first().waitFor();
    await tab.keyboard.press("Control+k");
    await tab.keyboard.type("t");
  }, (tab) => tab.getByRole("dialog").getByRole("option").nth(3));
  await above(tab, "shortcuts", how, "agents", (tab) => tab.keyboard.press("?"), dialog);
  await above(tab, "rename", how, `chat/${table}`, (tab) => tab.getByRole("heading", { level: 1 }).getByRole("button").click(), dialog);
  await above(tab, "source", how, `chat/${table}`, (tab) => tab.locator("a.citation").first().click(), (tab) => tab.getByRole("complementary", { name: "Source" }));
  await above(tab, "tool", how, "agents/mcp_agent_timezones", (tab) => tab.getByRole("button", { name: /^Try/ }).first().click(), dialog);
  await above(tab, "team", how, "teams", async (tab) => {
    await tab.locator(".card summary").first().click();
    await tab.getByRole("button", { name: "Edit" }).click();
  }, (tab) => tab.getByRole("group", { name: "Members" }));
  await above(tab, "reader", how, await passage(), async () => {}, (tab) => tab.locator("mark").first());
  await working(tab, how);
  // What was read stays while the server is not there.
  await above(tab, "outage", how, `chat/${table}`, async (tab) => {
    await tab.locator("article.answer").filter({ hasText: "most time zones" }).waitFor();
    await tab.route("**/*", (route) => route.abort());
  }, (tab) => tab.locator(".banner.bad"));
}

/** What agents learned, evaluations, questions that wait, a prompt that is tried: of a scripted model. */
async function withModel() {
  const model = await startModel();
  const server = await startServer({ model: model.url, further: ["asker"] });
  const tab = await open(browser, server.url);
  const read = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  for (const name of ["Good answer", "Save"]) await tab.getByRole("button", { name }).first().click();
  for (const [key, value] of [["company", "Acme"], ["language", "British English"]]) await fetch(`${server.url}/v1/memory/${key}?user=local`, { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ value, preference: key === "language" }) });
  await writeFile(join(server.home, "rated.jsonl"), await (await fetch(`${server.url}/v1/evaluations/data`)).text());
  await server.program("eval", "rated.jsonl", "--model", "small", "--model", "large", "--judge", "wise");
  const asking = await ask(tab, "Please approve a note");
  await tab.getByRole("region", { name: "Waiting for you" }).waitFor();
  await ask(tab, "Please clarify the year");
  await tab.getByRole("region", { name: "Waiting for you" }).waitFor();
  await tab.context().close();
  await pictures(server.url, [
    ["inbox", "inbox", (tab) => tab.locator(".inbox-entry").nth(1)],
    ["approval", `chat/${asking}`, (tab) => tab.getByRole("region", { name: "Waiting for you" })],
    ["agent", "agents/mcp_agent_notes", (tab) => tab.getByRole("region", { name: "Tools" })],
    ["skills", "skills", (tab) => tab.locator(".card").first()],
    ["memory", "memory", (tab) => tab.locator(".card").first()],
    ["evaluations", "evaluations", (tab) => tab.getByRole("region", { name: "Cases" })],
    ["again", `again/${read}`, (tab) => tab.getByLabel("Prompt", { exact: true })],
  ]);
  await server.stop();
  model.close();
}

/** Graphs of a program's own. */
async function withGraphs() {
  const server = await startServer({ example: "order", model: NOWHERE });
  const tab = await open(browser, server.url);
  await go(tab, "graphs");
  await tab.getByRole("main").getByRole("link", { name: "order" }).click();
  await tab.getByLabel("item").fill("a globe");
  await tab.getByLabel("cents").fill("25000");
  await tab.getByRole("button", { name: "Start", exact: true }).click();
  await tab.waitForURL(/#\/chat\/[0-9a-f-]{36}/);
  const thread = tab.url().split("/").at(-1);
  await tab.getByRole("region", { name: "Waiting for you" }).waitFor();
  await tab.context().close();
  await pictures(server.url, [
    ["graphs", "graphs/order", (tab) => tab.getByRole("img", { name: /^Graph order/ })],
    ["graph-run", `chat/${thread}`, (tab) => tab.getByRole("region", { name: "Waiting for you" })],
  ]);
  await server.stop();
}

/** A server without servers and without a model, and the login of a guarded one with all the ways to log in. */
async function beginnings() {
  const bare = await startServer({ model: NOWHERE, bare: true });
  await pictures(bare.url, [["first-steps", "chat", (tab) => tab.getByRole("region", { name: "First steps" })]]);
  await bare.stop();
  const oidc = { issuer: "https://login.example.org", client_id: "perihelion", public_url: "https://agents.example.org", name: "Example" };
  const guarded = await startServer({ token: TOKEN, env: { PERIHELION_SERVE_OIDC: JSON.stringify(oidc) } });
  await pictures(guarded.url, [["login", "", (tab) => tab.getByRole("link", { name: "Log in with Example" })]]);
  for (const name of ["ada", "grace"]) await fetch(`${guarded.url}/v1/users`, { method: "POST", headers: { "content-type": "application/json", "x-api-key": TOKEN }, body: JSON.stringify({ name, password: "correct horse battery staple" }) });
  await pictures(guarded.url, [["users", "account", (tab) => tab.getByRole("region", { name: "User list" }).getByRole("row").nth(2)]], async (tab, how) => {
    await above(tab, "scopes", how, "account", (tab) => tab.getByRole("button", { name: /^Change scopes/ }).first().click(), (tab) => tab.getByRole("dialog"));
  }, async (tab) => {
    await tab.getByLabel("API key").fill(TOKEN);
    await tab.getByRole("button", { name: "Use the key" }).click();
    await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  });
  await guarded.stop();
}

try {
  await savedTrace();
  await pictures(demo.url, viewsOf(table, chart).filter(([name]) => !EMPTY.has(name)), aboveDemo);
  await withModel();
  await withGraphs();
  await beginnings();
} finally {
  await browser.close();
  await demo.stop();
}
