/**
 * Frame of every page: the session, the states, and messages to and from the embedding page.
 *
 * `document.documentElement.dataset.state` is loading, ready, empty, expired, denied or error. Messages to the parent:
 * `{type: "report:height", height}` and `{type: "report:token-expired"}`; from it, `{type: "report:token", token}`.
 */

import { Failure, Session, tokenFromAddress } from "./api.js";
import { byId, el, fill, icon } from "./dom.js";
import { instant } from "./format.js";

const RELOADS = 3; // after a removed data version; at most one is published per minute

const parentPage = window.parent === window ? null : window.parent;

// Send only to the surrounding site, if the browser names it. Otherwise send to any parent: frame-ancestors has already
// restricted it, and the messages contain only a height or the expiry of a token.
const around = location.ancestorOrigins?.[0];
const tell = (message) => parentPage?.postMessage(message, around?.startsWith("http") ? around : "*");

const PANELS = {
  expired: {
    icon: "clock",
    title: "This report's link has expired",
    text: "Links are short-lived. Reload the page that shows this report to get a fresh one.",
  },
  denied: {
    icon: "lock",
    title: "This report cannot be shown",
    text: "Its link was revoked, or belongs to another report. Ask for a new link.",
  },
  "not-found": {
    icon: "empty",
    title: "There is no such report any more",
    text: "Its token or wallet has been deleted.",
  },
  "not-covered": {
    icon: "empty",
    title: "Nothing is known about that moment",
    text: "The ledger is not collected at a moment of this report.",
  },
  busy: {
    icon: "clock",
    title: "Too many requests just now",
    text: "The report loads by itself in a moment.",
    retry: true,
  },
  unreachable: {
    icon: "alert",
    title: "The service cannot be reached",
    text: "Check the connection, then try again.",
    retry: true,
  },
  gone: { icon: "clock", title: "The data changed while it was read", text: "Load the newest figures.", retry: true },
  failed: { icon: "alert", title: "This report could not be loaded", retry: true },
};

const STATES = { expired: "expired", denied: "denied", "not-covered": "empty" };

/** One report in the browser. */
export class Page {
  #load;
  #shown = false;
  #reloads = 0;
  #runs = 0;

  /**
   * @param {(session: Session) => Promise<"ready" | "empty">} load fetches and draws everything, any number of times
   */
  constructor(load) {
    this.#load = load;
    this.session = new Session(tokenFromAddress(), (failure) => this.fail(failure));
    window.addEventListener("message", (event) => this.#heard(event));
    new ResizeObserver(() => this.#reportHeight()).observe(document.body);
  }

  /** Load and draw everything. */
  async run() {
    const run = ++this.#runs;
    setState("loading");
    byId("panel").hidden = true;
    byId("notice").hidden = true;
    try {
      const state = await this.#load(this.session);
      if (run !== this.#runs) return;
      this.#shown = true;
      this.#reloads = 0;
      byId("content").hidden = false;
      setState(state);
    } catch (error) {
      if (run === this.#runs) this.fail(error);
    }
  }

  /**
   * Show the reason of an empty or interrupted page.
   * @param {unknown} error any error except a Failure is a defect of the page and is rethrown after it is shown
   */
  fail(error) {
    const failure = error instanceof Failure ? error : new Failure("failed", { detail: "The page met an error." });
    if (failure.kind === "gone" && this.#reloads++ < RELOADS) {
      this.run();
      return;
    }
    if (failure.kind === "expired") tell({ type: "report:token-expired" });
    if (failure.kind === "busy") setTimeout(() => this.run(), (failure.retryAfter ?? 5) * 1000);
    setState(STATES[failure.kind] ?? "error");
    this.#show(failure);
    if (failure !== error) throw error;
  }

  // Drawn content stays readable under a notice, unless access was withdrawn; an empty page shows a panel.
  #show(failure) {
    if (["denied", "not-found"].includes(failure.kind)) this.#shown = false;
    const { title, text = failure.message, retry = false, icon: which } = PANELS[failure.kind] ?? PANELS.failed;
    const button = retry && el("button", { type: "button", onclick: () => this.run() }, "Try again");
    const where = this.#shown ? "notice" : "panel";
    const words = el(
      "div",
      null,
      el(this.#shown ? "strong" : "h1", null, title),
      el("p", null, text),
      nearest(failure),
    );
    fill(where, icon(which), words, button);
    byId(where).hidden = false;
    byId("content").hidden = !this.#shown;
  }

  #heard({ source, data }) {
    if (parentPage === null || source !== parentPage || data?.type !== "report:token") return;
    if (typeof data.token !== "string") return;
    const waiting = ["expired", "denied"].includes(document.documentElement.dataset.state);
    this.session.accept(data.token);
    if (waiting) this.run();
  }

  #reportHeight() {
    tell({ type: "report:height", height: Math.ceil(document.body.getBoundingClientRect().height) });
  }
}

const OF_TWO = { from: " to the earlier of the two", to: " to the later of the two" };

function nearest({ problem }) {
  const which = OF_TWO[problem?.errors?.[0]?.parameter] ?? "";
  const moments = [problem?.before, problem?.after].filter(Boolean).map((at) => instant(at));
  return moments.length ? el("p", null, `Nearest collected moments${which}: ${moments.join(" and ")}.`) : null;
}

function setState(state) {
  document.documentElement.dataset.state = state;
}
