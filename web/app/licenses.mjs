// Writes the licence texts of the packages that the page is bundled from to ../licenses.json, or to the file that is named:
// the packages of a release contain them.
import { readFile, readdir, writeFile } from "node:fs/promises";

const lock = JSON.parse(await readFile("package-lock.json", "utf8"));
const used = Object.entries(lock.packages).filter(([path, entry]) => path && !entry.dev && !path.includes("/@types/"));
const packages = [];
for (const [path, { version, license }] of used) {
  const name = path.replace(/^.*node_modules\//, "");
  const file = (await readdir(path)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence text`);
  packages.push({ name, version, license, text: (await readFile(`${path}/${file}`, "utf8")).trim() });
}
await writeFile(process.argv[2] ?? new URL("../licenses.json", import.meta.url), `${JSON.stringify(packages, null, 1)}\n`);
