// Reads the licence texts of the packages that the page is bundled from. Run by itself, it writes them to ../licenses.json, or to
// the file that is named: the packages of a release contain them.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** Returns the packages that the page is bundled from, each with its licence. */
export async function packages() {
  const lock = JSON.parse(await readFile("package-lock.json", "utf8"));
  const used = Object.entries(lock.packages).filter(([path, entry]) => path && !entry.dev && !path.includes("/@types/"));
  return Promise.all(used.map(async ([path, { version, license }]) => {
    const name = path.replace(/^.*node_modules\//, "");
    const file = (await readdir(path)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence text`);
    return { name, version, license, text: (await readFile(`${path}/${file}`, "utf8")).trim() };
  }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(process.argv[2] ?? new URL("../licenses.json", import.meta.url), `${JSON.stringify(await packages(), null, 1)}\n`);
}
