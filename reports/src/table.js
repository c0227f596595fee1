/**
 * A native table over a data route. The server sorts, searches, filters and pages. The browser has one page of rows, or
 * all rows during printing.
 *
 * The markup (search, filters, table, pager) is the page's; see cap-table.html.
 */

import { Failure } from "./api.js";
import { announce, byId, el } from "./dom.js";
import { fitted } from "./fit.js";
import { count, plural } from "./format.js";
import { print, printsEverything } from "./paper.js";

const SEARCH_DELAY_MS = 250;
const PAGE_SIZES = [25, 50, 100, 200];
const MOST_PRINTED = 20_000; // some hundred sheets; a file holds the rest
const READ_AT_ONCE = 4;

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} label
 * @property {string} [sort] name of the sort; without it, not sortable.
 * @property {boolean} [descending] the first click sorts downwards.
 * @property {boolean} [number] aligned to the right.
 * @property {string} [hint] meaning of the numbers.
 * @property {[string, string]} [orders] words for both directions in the list of sorts; by default from the label.
 * @property {boolean} [isAlike] another column with the same sort replaces this one in the list of sorts.
 * @property {(row: any, sort: string) => Node | string} cell
 */

/** Rows of one data route. */
export class Table {
  #options;
  #session = null;
  #dataVersion = null;
  #query;
  #offset = 0;
  #size = PAGE_SIZES[0];
  #total = 0;
  #pending = null;
  #head = new Map();
  #said = 0;
  #fit;

  /**
   * @param {object} options
   * @param {Column[]} options.columns
   * @param {string} options.path such as /embed/data/cap-table, with subpaths rows and csv.
   * @param {string} options.sort initial sort; `-` before it for downwards.
   * @param {[string, string]} options.what singular and plural, such as "holder" and "holders".
   * @param {(page: any) => any[]} [options.rowsOf] rows of a response, by default its data.
   * @param {(rows: any[], sort: string) => any[]} [options.arrange] puts lines of text `{line, title}` between rows.
   * @param {string[]} [options.drop] keys of columns to drop without room, least important first.
   * @param {Record<string, string>} [options.query] further initial parameters.
   * @param {string[]} [options.filters] ids of selects: "filter-" and the parameter's name.
   * @param {(failure: unknown) => void} options.onFailure called with failures of the whole page.
   */
  constructor(options) {
    this.#options = options;
    this.#query = { sort: options.sort, ...options.query };
    this.#drawHead();
    this.#listen();
    this.#fit = fitted(byId("table-body").parentElement, options.drop ?? [], (dropped) => this.#tellDropped(dropped));
  }

  /**
   * Restart with a data version.
   *
   * @param {import("./api.js").Session} session
   * @param {number} dataVersion
   * @param {any} [page] response of `firstPage`, used if it has that version.
   * @returns {Promise<void>} resolves with the first rows
   */
  async start(session, dataVersion, page = null) {
    this.#session = session;
    this.#dataVersion = dataVersion;
    if (page?.dataVersion === dataVersion) this.#draw(page);
    else await this.#read({ rethrow: true });
    if (printsEverything()) await this.#readAll();
  }

  /** @param {Record<string, string | null>} parameters merged into the query; the first page is shown */
  narrow(parameters) {
    this.#query = { ...this.#query, ...parameters };
    this.#offset = 0;
    return this.#read();
  }

  #drawHead() {
    const cells = this.#options.columns.map((column) => {
      const content = column.sort
        ? el(
            "button",
            { type: "button", onclick: () => this.#sortBy(column) },
            el("span", null, column.label),
            el("i.arrow", { "aria-hidden": true }),
          )
        : el("span", null, column.label);
      const cell = el(
        tagOf("th", column),
        { role: "columnheader", scope: "col", title: column.hint },
        content,
      );
      this.#head.set(column.key, cell);
      return cell;
    });
    byId("table-head").replaceChildren(el("tr", { role: "row" }, ...cells));
    byId("sort").replaceChildren(...this.#options.columns.filter(({ sort, isAlike }) => sort && !isAlike).flatMap(sortsOf));
    this.#markSort();
  }

  #sortBy({ sort, descending }) {
    const [down, up] = [`-${sort}`, sort];
    const [first, second] = descending ? [down, up] : [up, down];
    this.#order(this.#query.sort === first ? second : first);
  }

  #order(sort) {
    this.narrow({ sort });
    this.#markSort();
  }

  #markSort() {
    byId("sort").value = this.#query.sort;
    const name = this.#query.sort.replace("-", "");
    const direction = this.#query.sort.startsWith("-") ? "descending" : "ascending";
    for (const column of this.#options.columns) {
      const cell = this.#head.get(column.key);
      if (column.sort === name) cell.setAttribute("aria-sort", direction);
      else cell.removeAttribute("aria-sort");
    }
  }

  #listen() {
    let timer = 0;
    const search = byId("search");
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.narrow({ q: search.value.trim() }), SEARCH_DELAY_MS);
    });
    for (const id of this.#options.filters ?? []) {
      const select = byId(id);
      select.addEventListener("change", () => this.narrow({ [id.replace("filter-", "")]: select.value }));
    }
    byId("sort").addEventListener("change", ({ target }) => this.#order(target.value));
    const size = byId("page-size");
    size.replaceChildren(...PAGE_SIZES.map((each) => el("option", { value: each }, count(each))));
    size.addEventListener("change", () => {
      this.#size = Number(size.value);
      this.#turnTo(this.#offset - (this.#offset % this.#size));
    });
    byId("page-first").addEventListener("click", () => this.#turnTo(0));
    byId("page-previous").addEventListener("click", () => this.#turnTo(Math.max(0, this.#offset - this.#size)));
    byId("page-next").addEventListener("click", () => this.#turnTo(this.#offset + this.#size));
    byId("page-last").addEventListener("click", () => this.#turnTo(lastOffset(this.#total, this.#size)));
    byId("download").addEventListener("click", () => this.#download());
    byId("downloads").addEventListener("load", () => this.#downloadRefused());
    byId("print").addEventListener("click", () => this.#print());
    document.addEventListener("keydown", (event) => this.#printKey(event));
    window.addEventListener("afterprint", () => printsEverything() || this.#clearPaper());
  }

  #turnTo(offset) {
    this.#offset = offset;
    return this.#read();
  }

  async #read({ rethrow = false } = {}) {
    this.#pending?.abort();
    const reading = new AbortController();
    this.#pending = reading;
    const body = byId("table-body");
    body.setAttribute("aria-busy", "true");
    try {
      const page = await this.#ask(this.#size, this.#offset, reading.signal);
      if (this.#pending === reading) this.#draw(page);
    } catch (error) {
      if (this.#pending !== reading) return; // replaced by a newer request
      if (rethrow) throw error;
      this.#fail(error);
    } finally {
      if (this.#pending === reading) body.removeAttribute("aria-busy");
    }
  }

  #ask(limit, offset, signal) {
    const parameters = { ...this.#query, limit, offset, dataVersion: this.#dataVersion };
    return this.#session.get(`${this.#options.path}/rows`, parameters, { signal });
  }

  #draw(page) {
    const { total, offset } = page;
    this.#total = total;
    this.#clearPaper();
    const data = this.#dataOf(page);
    byId("table-body").replaceChildren(...(data.length ? this.#rows(data) : [this.#message(this.#none())]));
    this.#fit();
    const shown = this.#range(offset, data.length);
    byId("page-range").textContent = shown;
    for (const id of ["page-first", "page-previous"]) byId(id).disabled = offset === 0;
    for (const id of ["page-next", "page-last"]) byId(id).disabled = offset + data.length >= total;
    for (const id of ["download", "print"]) byId(id).disabled = total === 0;
    announce(shown);
  }

  #dataOf(page) {
    const { rowsOf = ({ data }) => data } = this.#options;
    return rowsOf(page);
  }

  #rows(data) {
    const { arrange = (rows) => rows, columns } = this.#options;
    return arrange(data, this.#query.sort).map((row) =>
      row.line
        ? this.#line(row)
        : el("tr", { role: "row" }, ...columns.map((column) => this.#cell(column, row))),
    );
  }

  #line({ line, title, kind }) {
    const { length } = this.#options.columns;
    return el(`tr.line.${kind}`, { role: "row", title }, el("td", { role: "cell", colspan: length }, line));
  }

  #tellDropped(dropped) {
    const labels = this.#options.columns.filter(({ key }) => dropped.includes(key)).map(({ label }) => label);
    byId("dropped").textContent = labels.length ? `No room for: ${labels.join(", ")}` : "";
  }

  // --- paper

  async #print() {
    const button = byId("print");
    button.disabled = true;
    this.#say("Reading all rows to print.");
    try {
      await this.#readAll();
      this.#say("");
      if (!print()) this.#say("The page around this report does not let it print. Download the rows instead.");
    } catch (error) {
      this.#fail(error);
    } finally {
      button.disabled = false;
    }
  }

  // In a frame, the browser's own command prints the surrounding page; this does not change.
  #printKey(event) {
    const isPrint = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key === "p";
    if (!isPrint || window.parent !== window || byId("print").disabled) return;
    event.preventDefault();
    this.#print();
  }

  // Print shows all rows of the current query, not just one page of them.
  async #readAll() {
    const size = PAGE_SIZES.at(-1);
    const [query, last] = [this.#query, Math.min(this.#total, MOST_PRINTED)];
    const offsets = Array.from({ length: Math.ceil(last / size) }, (_, index) => index * size);
    const pages = [];
    while (pages.length < offsets.length) {
      const next = offsets.slice(pages.length, pages.length + READ_AT_ONCE);
      pages.push(...(await Promise.all(next.map((offset) => this.#ask(size, offset)))));
    }
    if (this.#query !== query) return;
    const data = pages.flatMap((page) => this.#dataOf(page));
    byId("table-paper").replaceChildren(...this.#rows(data));
    byId("table-paper").parentElement.classList.add("whole");
    byId("paper-range").textContent = this.#range(0, data.length);
  }

  #clearPaper() {
    byId("table-paper").replaceChildren();
    byId("table-paper").parentElement.classList.remove("whole");
    byId("paper-range").textContent =
      this.#total > this.#size ? "One page of the rows: Print, in the report itself, prints all of them." : "";
  }

  #range(offset, length) {
    const named = plural(this.#total, ...this.#options.what);
    return length ? `${count(offset + 1)}–${count(offset + length)} of ${named}` : named;
  }

  #none() {
    const narrowed = Object.entries(this.#query).some(([name, value]) => !["sort", "fees"].includes(name) && value);
    return `No ${this.#options.what[1]}${narrowed ? " match" : ""}.`;
  }

  #cell(column, row) {
    return el(tagOf("td", column), { role: "cell" }, column.cell(row, this.#query.sort));
  }

  #message(...content) {
    return el(
      "tr",
      { role: "row" },
      el("td.message", { role: "cell", colspan: this.#options.columns.length }, ...content),
    );
  }

  #fail(error) {
    const concernsPage = !(error instanceof Failure) || ["expired", "denied", "gone", "not-found"].includes(error.kind);
    if (concernsPage) {
      this.#options.onFailure(error);
      return;
    }
    const again = el("button", { type: "button", onclick: () => this.#read() }, "Try again");
    const reason = error.kind === "unreachable" ? "The service cannot be reached. " : `${error.message} `;
    byId("table-body").replaceChildren(this.#message(reason, again));
    announce(reason);
  }

  // The form sends the embed token in its body as `token`: the browser streams the response to disk, and no address
  // contains the token. There, the filter by an activity's token is `asset`, and fees are separate rows.
  #download() {
    const { token: asset, ...query } = this.#query;
    const fields = { ...query, fees: null, asset, dataVersion: this.#dataVersion, token: this.#session.token };
    const inputs = Object.entries(fields)
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => el("input", { type: "hidden", name, value }));
    const form = el(
      "form",
      { method: "post", action: `${this.#options.path}/csv`, target: "downloads", hidden: true },
      ...inputs,
    );
    document.body.append(form);
    form.submit();
    form.remove();
    this.#say("The download has started.");
  }

  // A download loads nothing into its frame; a loaded document is an error response.
  #downloadRefused() {
    const address = byId("downloads").contentDocument?.location.href;
    if (address !== "about:blank") this.#say("The download was refused. Reload the report, then try again.");
  }

  #say(message) {
    clearTimeout(this.#said);
    byId("download-state").textContent = message;
    this.#said = setTimeout(() => (byId("download-state").textContent = ""), 8000);
    announce(message);
  }
}

/**
 * Request the first rows in parallel with the summary, before it is known how to draw them.
 * @param {import("./api.js").Session} session
 * @param {string} path
 * @param {string} sort
 * @param {Record<string, string>} [query] further parameters
 * @returns {Promise<any>}
 * @throws {import("./api.js").Failure}
 */
export const firstPage = (session, path, sort, query = {}) =>
  session.get(`${path}/rows`, { sort, ...query, limit: PAGE_SIZES[0], offset: 0 });

function sortsOf({ label, sort, descending, number, orders }) {
  const words = number ? ["smallest first", "largest first"] : ["A to Z", "Z to A"];
  const [up, down] = orders ?? words.map((word) => `${label}, ${word}`);
  const options = [el("option", { value: sort }, up), el("option", { value: `-${sort}` }, down)];
  return descending ? options.reverse() : options;
}

const tagOf = (kind, { key, number }) => (number ? `${kind}.${key}.right` : `${kind}.${key}`);

const lastOffset = (total, size) => Math.max(0, Math.ceil(total / size) - 1) * size;
