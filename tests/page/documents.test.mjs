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

/** Writes a PDF with a sentence in the middle of each page, and much else around it. */
function pdf(lines) {
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${lines.map((_, page) => `${4 + 2 * page} 0 R`).join(" ")}] /Count ${lines.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
  ];
  for (const [page, line] of lines.entries()) {
    const shown = Array.from({ length: 41 }, (_, number) => `0 -15 Td (${number === 20 ? line : `Line ${number} of page ${page + 1} says no more than that there is another line.`}) Tj`);
    const drawn = `BT /F 11 Tf 72 740 Td ${shown.join(" ")} ET`;
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents ${5 + 2 * page} 0 R >>`);
    objects.push(`<< /Length ${drawn.length} >>\nstream\n${drawn}\nendstream`);
  }
  let text = "%PDF-1.4\n";
  const places = objects.map((object, index) => {
    const place = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, "0")} 00000 n \n`;
  });
  const size = objects.length + 1;
  return `${text}xref\n0 ${size}\n0000000000 65535 f \n${places.join("")}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
}

let server, tab;
setStage({ further: ["papers"] }, (stage) => ({ server, tab } = stage));

const file = (name, text) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });

test("a document is sent, listed, found by its words, opened at them, and deleted", async () => {
  await go(tab, "documents");
  await tab.getByLabel("Files to add").setInputFiles([file("mercury.md", PAPER)]);
  const sent = tab.getByRole("list", { name: "Files" });
  await sent.getByText(/^added/).waitFor();
  const row = tab.getByRole("region", { name: "Documents" }).getByRole("row").filter({ hasText: "On Mercury" });
  await row.getByText("searchable").waitFor();
  await inspect(tab, "the documents");
  await tab.getByLabel("Search Documents").fill("seconds of arc");
  await tab.getByRole("region", { name: "Passages" }).getByRole("link", { name: "On Mercury" }).first().click();
  await tab.locator("mark").filter({ hasText: "43 seconds of arc" }).waitFor();
  await inspect(tab, "a document at a quote");
  await tab.getByRole("link", { name: "← Documents" }).click();
  await row.getByRole("button", { name: "Delete On Mercury" }).click();
  await row.waitFor({ state: "detached" });
  const deleted = tab.waitForResponse((response) => response.request().method() === "DELETE");
  await tab.getByRole("button", { name: "Dismiss", exact: true }).click();
  assert.equal((await deleted).status(), 204);
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
  await tab.getByRole("region", { name: "Documents" }).getByRole("row").filter({ hasText: "Venus" }).getByText("searchable").waitFor();
  tab.faults = tab.faults.filter((fault) => !fault.includes("422"));
});

test("a document is attached in the chat, quoted, and its citation opens it at the quote", async () => {
  await go(tab, "chat");
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  await tab.getByLabel("Files to attach").setInputFiles([file("mercury.md", PAPER)]);
  await tab.getByRole("list", { name: "Files" }).getByText(/^added/).waitFor();
  await tab.getByLabel("Your question").fill("Please quote what is known of its perihelion");
  await tab.getByRole("button", { name: "Ask", exact: true }).click();
  await answered(tab, "written down");
  const thread = tab.url().split("/").at(-1);
  const { values } = await server.json(`/threads/${thread}/state`);
  assert.match(values.request_context.attached_documents, /On Mercury \(document /);
  await tab.locator("article.answer a.citation").click();
  const source = tab.getByRole("complementary", { name: "Source" });
  await source.getByText("43 seconds of arc").first().waitFor();
  await inspect(tab, "a citation");
  await source.getByRole("link", { name: "Open at the quote" }).first().click();
  await tab.locator("mark").filter({ hasText: "43 seconds of arc" }).waitFor();
});

test("a document with pages is opened at the page of the quote, and turned over", async () => {
  await go(tab, "documents");
  await tab.getByLabel("Files to add").setInputFiles([file("orbits.pdf", pdf(["Venus has an orbit that is nearly round.", "Mars was found to move on an ellipse by Kepler.", "Pluto crosses the orbit of Neptune."]))]);
  await tab.getByRole("list", { name: "Files" }).getByText(/^added/).waitFor();
  await tab.getByRole("region", { name: "Documents" }).getByRole("row").filter({ hasText: "orbits" }).getByRole("cell", { name: "3", exact: true }).first().waitFor();
  await tab.getByLabel("Search Documents").fill("ellipse by Kepler");
  const passage = tab.getByRole("region", { name: "Passages" }).getByRole("article").filter({ hasText: "ellipse" }).first();
  await passage.getByText("page 2", { exact: true }).waitFor();
  await passage.getByRole("link").click();
  await tab.getByText("page 2 of 3").waitFor();
  await tab.locator("mark").filter({ hasText: "ellipse by Kepler" }).waitFor();
  await inspect(tab, "a page of a document");
  await tab.getByRole("button", { name: "Next page" }).click();
  await tab.getByText("page 3 of 3").waitFor();
  await tab.getByText(/Pluto crosses the orbit of Neptune/).waitFor();
});

test("a document without pages is read on part by part", async () => {
  const added = await fetch(`${server.url}/v1/documents?name=planets.md`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: `${"Jupiter is the largest one. ".repeat(200)}\n\nThe last line is about Neptune.\n` });
  const { document } = await added.json();
  await go(tab, `documents/${document.id}`);
  await tab.getByText(/^characters 0 to 4,000 of /).waitFor();
  assert.ok(await tab.getByRole("button", { name: "Previous part" }).isDisabled());
  await tab.getByRole("button", { name: "Next part" }).click();
  await tab.getByText(/The last line is about Neptune/).waitFor();
  assert.ok(await tab.getByRole("button", { name: "Next part" }).isDisabled());
  await tab.getByRole("button", { name: "Previous part" }).click();
  await tab.getByText(/^characters [\d,]+ to /).waitFor();
});
