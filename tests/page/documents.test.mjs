/** S3.13, S3.05, S3.06: documents are sent, found, quoted and opened at the quote, in Chromium against the real server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, go, inspect } from "./browser.mjs";
import { setStage } from "./stage.mjs";

const PAPER = `# On Mercury

${"It is the innermost planet, and its year is short. ".repeat(120)}

## The perihelion 🜚

The perihelion of Mercury moves by 43 seconds of arc a century more than Newton has it.

${"Others have looked for another planet within. ".repeat(120)}
`;

let server, tab;
setStage({ further: ["papers"] }, (stage) => ({ server, tab } = stage));

const file = (name, text) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });

test("a document is sent, listed, found by its words, opened at them, and deleted", async () => {
  await go(tab, "documents");
  await tab.getByLabel("Files to add").setInputFiles([file("mercury.md", PAPER)]);
  const sent = tab.getByRole("list", { name: "Files" });
  await sent.getByText(/^added/).waitFor();
  const card = tab.locator(".card").filter({ hasText: "On Mercury" });
  await card.waitFor();
  await inspect(tab, "the documents");
  await tab.getByLabel("Search Documents").fill("seconds of arc");
  await tab.getByRole("region", { name: "Passages" }).getByRole("link", { name: "On Mercury" }).first().click();
  await tab.locator("mark").filter({ hasText: "43 seconds of arc" }).waitFor();
  await inspect(tab, "a document at a quote");
  await tab.getByRole("link", { name: "← Documents" }).click();
  await card.locator("summary").click();
  await card.getByRole("button", { name: "Delete" }).click();
  await card.waitFor({ state: "detached" });
});

test("files that are dropped are sent, and what is wrong with one stands beside its name", async () => {
  await go(tab, "documents");
  const drop = tab.locator(".drop");
  await drop.waitFor();
  const files = await tab.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["%PDF-1.7 and nothing more"], "broken.pdf"));
    data.items.add(new File(["# Venus\n\nIt turns backwards.\n"], "venus.md"));
    return data;
  });
  await drop.dispatchEvent("drop", { dataTransfer: files });
  const sent = tab.getByRole("list", { name: "Files" });
  await sent.getByRole("listitem").filter({ hasText: "venus.md" }).getByText(/^added/).waitFor();
  await sent.getByRole("listitem").filter({ hasText: "broken.pdf" }).locator(".error-text").waitFor();
  await tab.locator(".card").filter({ hasText: "Venus" }).waitFor();
  tab.faults = tab.faults.filter((fault) => !fault.includes("422"));
});

test("a document is attached in the chat, quoted, and its citation opens it at the quote", async () => {
  await go(tab, "chat");
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  await tab.getByLabel("Files to attach").setInputFiles([file("mercury.md", PAPER)]);
  await tab.getByRole("list", { name: "Files" }).getByText(/^added/).waitFor();
  await tab.getByLabel("Your question").fill("Please quote what is known of its perihelion");
  await tab.getByRole("button", { name: "Ask" }).click();
  await answered(tab, "written down");
  const thread = tab.url().split("/").at(-1);
  const { values } = await server.json(`/threads/${thread}/state`);
  assert.match(values.request_context.attached_documents, /On Mercury \(document /);
  await tab.locator("article.answer a.citation").click();
  const source = tab.locator("#cite-1");
  await source.getByText("43 seconds of arc").first().waitFor();
  await inspect(tab, "a citation");
  await source.getByRole("link", { name: "Open at the quote" }).first().click();
  await tab.locator("mark").filter({ hasText: "43 seconds of arc" }).waitFor();
});
