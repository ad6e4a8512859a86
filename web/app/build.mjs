// Builds the page into ../dist, which is committed and embedded by the program, or into the directory that is named:
// `cargo build` needs no Node.
import { build } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { packages } from "./licenses.mjs";

const named = process.argv[2];
const out = named ? `${resolve(named)}/` : new URL("../dist/", import.meta.url).pathname;
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });

const common = { bundle: true, minify: true, format: "esm", target: ["es2022"], legalComments: "none", charset: "utf8", metafile: true, logLevel: "warning", outdir: out, entryNames: "[name]-[hash]" };

// Libraries have a file of their own, which a changed label leaves as it is.
const LIBRARIES = ["preact", "preact/hooks", "preact/compat", "preact/jsx-runtime", "@preact/signals", "micromark", "micromark-extension-gfm"];
const exported = LIBRARIES.map((name, index) => `export * as l${index} from "${name}";`).join("\n");
const libraries = await build({ ...common, stdin: { contents: exported, resolveDir: ".", sourcefile: "libraries.js" }, entryNames: "libraries-[hash]" });
const libraryFile = basename(Object.keys(libraries.metafile.outputs).find((path) => path.endsWith(".js")));

/** Takes what a library exports from the file of the libraries. */
const apart = {
  name: "libraries apart",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[^./]/ }, ({ path }) => (LIBRARIES.includes(path) ? { path, namespace: "library" } : undefined));
    onLoad({ filter: /.*/, namespace: "library" }, async ({ path }) => {
      const names = Object.keys(await import(path)).filter((name) => /^[\w$]+$/.test(name) && name !== "default");
      const index = LIBRARIES.indexOf(path);
      return { contents: `import { l${index} as library } from "./${libraryFile}";\nexport const { ${names.join(", ")} } = library;`, resolveDir: "." };
    });
    onResolve({ filter: /^\.\/libraries-/ }, ({ path }) => ({ path, external: true }));
  },
};

const built = await build({ ...common, entryPoints: { page: "src/main.tsx", style: "src/styles/page.css" }, jsx: "automatic", jsxImportSource: "preact", plugins: [apart] });
const files = Object.keys(built.metafile.outputs).map((path) => basename(path));
const script = files.find((name) => name.endsWith(".js"));
const style = files.find((name) => name.endsWith(".css"));
const page = await readFile("index.html", "utf8");
await writeFile(`${out}index.html`, page.replaceAll("page.js", script).replaceAll("page.css", style).replaceAll("libraries.js", libraryFile));
await cp("icon.svg", `${out}icon.svg`);
await writeFile(`${out}README.md`, "Built from `web/app` by `make page`; do not edit.\n");
await writeFile(`${out}LICENSES.txt`, licenceText(await packages()));

let size = 0;
for (const file of [libraryFile, script]) {
  const bytes = gzipSync(await readFile(`${out}${file}`), { level: 9 }).length;
  console.log(`${file}: ${(bytes / 1024).toFixed(1)} KB gzip`);
  size += bytes;
}
const limit = 120 * 1024;
console.log(`first load: ${(size / 1024).toFixed(1)} KB gzip (at most 120)`);
if (size > limit) process.exit(1);

/** Writes licences as text, each once with the packages that have it. */
function licenceText(all) {
  const byText = new Map(all.map(({ text }) => [text, all.filter((one) => one.text === text)]));
  const parts = [...byText].map(([text, some]) => `${some.map(({ name, version, license }) => `${name} ${version} (${license})`).join("\n")}\n\n${text}\n`);
  return parts.join(`\n${"-".repeat(72)}\n\n`);
}
