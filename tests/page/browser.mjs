/** Chromium, and what is done in it over and over. */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";

const require = createRequire(new URL("../../web/app/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const AXE = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Milliseconds that a wait for the page may take on a machine that is busy. */
const PATIENCE = 30_000;

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: QUIET });

/** Opens a tab; whatever the page complains of, or asks of another address, stands in `tab.faults`. */
export async function open(browser, url, { width = 1280, height = 800, theme = "light", context } = {}) {
  const around = context ?? (await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: "reduce" }));
  if (process.env.PAGE_FROM_DISK && !served.has(around)) await fromDisk(around, url);
  const tab = await around.newPage();
  tab.setDefaultTimeout(PATIENCE);
  tab.faults = [];
  tab.on("pageerror", (error) => tab.faults.push(String(error)));
  tab.on("console", (message) => {
    // A request that a killed server does not answer is logged by the browser itself.
    const isOfKill = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/.test(message.text());
    if (message.type() === "error" && !isOfKill) tab.faults.push(message.text());
  });
  tab.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !/^(data|blob|about):/.test(request.url())) tab.faults.push(`left the server: ${request.url()}`);
  });
  await tab.goto(url);
  return tab;
}

const KINDS = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

/** Windows whose files come from the disk. */
const served = new WeakSet();

/** Takes the page's files from web/dist, and those of traces from web/trace, and not from the program, which then need not be built for every change of the page. */
async function fromDisk(context, url) {
  served.add(context);
  const { origin } = new URL(url);
  const file = (name) => readFile(new URL(`../../web/dist/${name}`, import.meta.url));
  await context.route(`${origin}/`, async (route) => route.fulfill({ response: await route.fetch(), body: await file("index.html") }));
  await context.route(`${origin}/ui/*`, async (route) => {
    const name = new URL(route.request().url()).pathname.split("/").at(-1);
    await route.fulfill({ contentType: KINDS[name.split(".").at(-1)], body: await file(name) });
  });
  await context.route(/\/trace\/page(\?|$)/, async (route) => {
    // A tab that is closed meanwhile gets no answer.
    const response = await route.fetch().catch(() => null);
    if (response) await route.fulfill(response.ok() ? { response, body: await traceFromDisk(await response.text()) } : { response });
  });
}

/** Puts what stands in a trace's page into the template, style and script of web/trace. */
export async function traceFromDisk(page) {
  const file = (name) => readFile(new URL(`../../web/trace/${name}`, import.meta.url), "utf8");
  const found = (pattern) => pattern.exec(page)?.[1] ?? "";
  const parts = {
    nonce: found(/nonce="([^"]+)"/),
    title: found(/<title>(.*?)<\/title>/s),
    data: found(/id="trace-data">(.*?)<\/script>/s),
    spans: [...page.matchAll(/<script type="application\/json" class="spans">.*?<\/script>\n/gs)].join(""),
    style: await file("page.css"),
    script: await file("page.js"),
  };
  return (await file("page.html")).replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
}

/** Shows a view by its address, as a link in the page would. */
export const go = (tab, view) => tab.evaluate((hash) => void (location.hash = hash), `#/${view}`);

/** Answers the page's own question before something is lost. */
export const confirm = (tab, action) => tab.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();

/** Opens what was done in the newest turn. */
export const openActivity = (tab) => tab.locator(".activity.done > summary").last().click();

/** Asks in a new thread and returns the thread's id once the page shows it. */
export async function ask(tab, question) {
  await go(tab, "chat");
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  await tab.getByLabel("Your question").fill(question);
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await tab.waitForURL(/#\/chat\/[0-9a-f-]{36}/);
  return tab.url().split("/").at(-1);
}

/** Asks again in the thread that is open, and waits for the end of its second turn. */
export async function askMore(tab, question) {
  await tab.getByLabel("Your question").fill(question);
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await tab.locator(".message.user").nth(1).waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
}

export const answerOf = (tab) => tab.locator("article.answer .markdown");

/** Waits for the finished answer and returns its text. */
export async function answered(tab, text) {
  const answer = answerOf(tab).filter({ hasText: text });
  await answer.first().waitFor();
  await tab.locator('.messages[aria-busy="false"]').waitFor();
  return answer.first().innerText();
}

/** Fails where axe finds something, or where the page is wider than its window. */
export async function inspect(tab, what) {
  // In frames as well, such as that of a trace.
  for (const frame of tab.frames()) await frame.evaluate(AXE);
  const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => `${node.target.join(" ")} ${node.failureSummary ?? ""}`).slice(0, 3).join(" | ")}`);
  assert.deepEqual(found, [], what);
  const beyond = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(beyond <= 0, `${what}: the page is ${beyond} pixels wider than its window`);
}
