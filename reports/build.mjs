/**
 * Build the pages: `node reports/build.mjs` writes build/reports/, which the API serves.
 *
 * Scripts and styles are bundled from locked packages, named by their content and compressed beside themselves; the
 * HTML names them. Nothing is inline, so that the pages live under a Content-Security-Policy without `unsafe-*`.
 */

import { constants, brotliCompressSync, gzipSync } from "node:zlib";
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const CHECKOUT = dirname(HERE);
const OUT = join(CHECKOUT, "build", "reports");
const NEW = `${OUT}.new`;
const PUBLIC = "/embed/assets";

/** Title and number of headline numbers of each page. `superset` is the shell for the other provider's dashboards. */
const PAGES = {
  "cap-table": { title: "Cap table", tiles: 7 },
  "cap-table-changes": { title: "Cap table changes", tiles: 5 },
  "wallet-activity": { title: "Wallet activity", tiles: 5 },
  index: { title: "Reports", tiles: 0 },
  superset: { title: "Report", tiles: 0 },
};

/** Licences that must accompany the bundled packages. */
const NOTICES = [
  ["Apache ECharts", "echarts/LICENSE"],
  ["Apache ECharts, notice", "echarts/NOTICE"],
  ["zrender", "zrender/LICENSE"],
  ["tslib", "tslib/LICENSE.txt"],
  ["jwt-decode", "jwt-decode/LICENSE"],
];

/** Bundled packages without a copy of their Apache licence, which is printed for ECharts. */
const APACHE = ["@superset-ui/embedded-sdk", "@superset-ui/switchboard"];

const source = (name) => join(HERE, "src", name);
const template = (name) => readFileSync(source(join("pages", `${name}.html`)), "utf8");
const pages = Object.keys(PAGES).filter((page) =>
  [`${page}.js`, `pages/${page}.html`].every((file) => existsSync(source(file))),
);

/** @returns {Promise<object>} esbuild's metafile: inputs and outputs, by path in the checkout */
async function bundle() {
  const entries = [...pages.map((page) => source(`${page}.js`)), source("theme.js"), source("page.css")];
  const { metafile } = await build({
    absWorkingDir: CHECKOUT,
    assetNames: "[name]-[hash]",
    bundle: true,
    charset: "utf8",
    chunkNames: "[name]-[hash]",
    define: { "process.env.NODE_ENV": '"production"' },
    entryNames: "[name]-[hash]",
    entryPoints: entries,
    format: "esm",
    legalComments: "external",
    loader: { ".woff2": "file" },
    logLevel: "warning",
    metafile: true,
    minify: true,
    outdir: join(NEW, "assets"),
    publicPath: PUBLIC,
    splitting: true,
    target: "es2022",
  });
  return metafile;
}

/** @param {object} metafile @param {string} name of a source @returns {{file: string, imports: object[]}} its output */
function outputOf(metafile, name) {
  const wanted = `reports/src/${name}`;
  const [path, output] = Object.entries(metafile.outputs).find(([, each]) => each.entryPoint === wanted);
  return { file: basename(path), imports: output.imports };
}

/** @param {object} metafile @param {string} script @returns {Set<string>} its imports, static and dynamic */
function chunksOf(metafile, script, found = new Set()) {
  const output = Object.entries(metafile.outputs).find(([path]) => basename(path) === script)[1];
  for (const { path } of output.imports) {
    const file = basename(path);
    if (found.has(file)) continue;
    found.add(file);
    chunksOf(metafile, file, found);
  }
  return found;
}

function head(metafile, page) {
  const link = (attributes, file) => `<link ${attributes} href="${PUBLIC}/${file}">`;
  const theme = `<script src="${PUBLIC}/${outputOf(metafile, "theme.js").file}"></script>`;
  const style = link('rel="stylesheet"', outputOf(metafile, "page.css").file);
  if (page === null) return [theme, style].join("\n");
  const script = outputOf(metafile, `${page}.js`).file;
  const ahead = [...chunksOf(metafile, script)].map((chunk) => link('rel="modulepreload"', chunk));
  return [theme, style, ...ahead, `<script type="module" src="${PUBLIC}/${script}"></script>`].join("\n");
}

function html(metafile, page) {
  const { title, tiles } = PAGES[page];
  const tile =
    '<div class="card kpi"><dt><span class="bone"></span></dt><dd><span class="bone wide"></span></dd></div>';
  const content = template(page)
    .replace("{{top}}\n", template("_top"))
    .replace("{{tiles}}", tile.repeat(tiles))
    .replace("{{table}}", template("_table"));
  const filled = { title, head: head(metafile, page), content };
  return template("_page").replace(/{{(\w+)}}/g, (_, slot) => filled[slot]);
}

function licences() {
  const modules = (path) => readFileSync(join(CHECKOUT, "node_modules", path), "utf8");
  const parts = NOTICES.map(([name, path]) => `=== ${name}\n\n${modules(path).trim()}\n`);
  for (const name of APACHE) {
    const { license, version } = JSON.parse(modules(join(name, "package.json")));
    if (license !== "Apache-2.0")
      throw new Error(`${name} ${version} is under ${license} now: change APACHE in build.mjs`);
    parts.push(`=== ${name}\n\nApache License 2.0, as printed for Apache ECharts\n`);
  }
  const assets = join(NEW, "assets");
  const comments = readdirSync(assets).filter((file) => file.endsWith(".LEGAL.txt"));
  const legal = [...new Set(comments.map((file) => readFileSync(join(assets, file), "utf8").trim()))].filter(Boolean);
  for (const file of comments) rmSync(join(assets, file));
  writeFileSync(
    join(assets, "LICENSES.txt"),
    [...parts, ...legal.map((text) => `=== In the bundled files\n\n${text}\n`)].join("\n"),
  );
}

function compress() {
  const assets = join(NEW, "assets");
  for (const file of readdirSync(assets).filter((each) => /\.(js|css)$/.test(each))) {
    const content = readFileSync(join(assets, file));
    writeFileSync(join(assets, `${file}.gz`), gzipSync(content, { level: 9 }));
    writeFileSync(
      join(assets, `${file}.br`),
      brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
    );
  }
}

rmSync(NEW, { recursive: true, force: true });
mkdirSync(NEW, { recursive: true });
const metafile = await bundle();
for (const page of pages) writeFileSync(join(NEW, `${page}.html`), html(metafile, page));
writeFileSync(join(NEW, "error.html"), template("error").replace("{{head}}", head(metafile, null)));
licences();
compress();
rmSync(OUT, { recursive: true, force: true });
renameSync(NEW, OUT);
