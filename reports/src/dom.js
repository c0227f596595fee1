/** Elements created from data: text stays text, and there are no style attributes. */

import { amount, exact, shortened, trend } from "./format.js";
import { checkOf, reasonOf } from "./status.js";

/**
 * Create an element.
 *
 * @param {string} tag such as `td.number`, with classes after dots.
 * @param {Record<string, any> | null} [attributes] `on*` are listeners; false, null and undefined are omitted.
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes, ...children) {
  const [kind, ...classes] = tag.split(".");
  const element = document.createElement(kind);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map(asNode));
  return element;
}

const asNode = (child) => (child instanceof Node ? child : String(child));

/** @param {string} id @returns {HTMLElement} @throws {Error} when the page has none */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`No element #${id} in this page`);
  return element;
}

/** @param {string} id @param {...(Node | string | null | false)} children replace the current content */
export function fill(id, ...children) {
  byId(id).replaceChildren(...children.filter(Boolean));
}

const OVERRIDES = /[\u202a-\u202e\u2066-\u2069]/g; // they would reverse the letters of a name

/** Foreign text, isolated in its own direction. @param {string} text @param {object} [attributes] */
export function name(text, attributes = {}) {
  const shown = text.replace(OVERRIDES, "");
  return el("bdi.name", { title: shown.length > 24 ? shown : null, ...attributes }, shown);
}

/** The same for plain text, such as an attribute. @param {string} text */
export function isolated(text) {
  const shown = text.replace(OVERRIDES, "");
  return /^[\x20-\x7e]*$/.test(shown) ? shown : `\u2068${shown}\u2069`;
}

/**
 * A number that may be missing; on hover it shows every digit, or the reason.
 * @param {string} shown
 * @param {{title?: string, missing?: string | null, className?: string}} about `missing`: reason of a missing number
 */
export function figure(shown, { title, missing = null, className = "" } = {}) {
  if (missing === null) return el("span", { class: className || null, title: title === shown ? null : title }, shown);
  return el("span.missing", null, el("span", { "aria-hidden": true }, "— "), el("span.why", null, missing));
}

/**
 * A value with every digit on hover, or the reason of a missing one.
 *
 * @param {string | null} text plain decimal.
 * @param {string} status its status in the response.
 * @param {import("./format.js").Style} style signed values are also coloured by sign.
 * @param {(text: string | null, style: object) => string} [show] formats the value
 */
export const valued = (text, status, style, show = amount) =>
  figure(show(text, style), {
    title: exact(text, style),
    missing: text === null ? reasonOf(status) : null,
    className: style.signed ? trend(text) : "",
  });

/**
 * Reconciliation of a balance; the most common state is plain text, so that exceptions stand out.
 * @param {string} state
 * @param {string} usual the most common state
 * @param {string} [more] for its title
 */
export function checkMark(state, usual, more = "") {
  const { word, meaning } = checkOf(state);
  const title = [meaning, more].filter(Boolean).join("\n");
  return el(state === usual ? "span.sub" : `span.badge.${state.toLowerCase()}`, { title }, word);
}

/**
 * Show a part of the page with a chart, or its replacement.
 * @param {string} part prefix of the ids
 * @param {boolean} there
 * @param {() => void} draw
 */
export function show(part, there, draw) {
  byId(`${part}-chart`).hidden = !there;
  byId(`${part}-none`).hidden = there;
  byId(`${part}-data`).hidden = !there;
  if (there) draw();
}

/**
 * Listen to a group of buttons with one pressed at a time.
 * @param {string} key of their data attribute
 * @param {(value: string) => void} chosen
 */
export function press(key, chosen) {
  const buttons = document.querySelectorAll(`[data-${key}]`);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
      chosen(button.dataset[key]);
    });
  }
}

/** Announce a message to screen readers. @param {string} message */
export function announce(message) {
  byId("live").textContent = message;
}

/** Put text on the clipboard; works in a frame that has no permission for the newer interface. @param {string} text */
export function copy(text) {
  const put = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", put, { once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", put);
  announce(done ? `Copied ${text}` : "Could not copy; select the text instead.");
  return done;
}

/**
 * A shortened address or hash; the full text appears on hover and in print, and a click copies it.
 * @param {string} text
 * @param {string} shown
 * @param {string} what such as "address"
 */
export function copyable(text, shown, what) {
  if (text === shown) return el("span.address", null, text);
  const button = el(
    "button.address",
    { type: "button", title: `Copy ${what} ${text}`, "data-full": text },
    el("span.short", null, shown),
    el("span.full", null, text),
  );
  button.addEventListener("click", () => {
    if (!copy(text)) return;
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1200);
  });
  return button;
}

/**
 * The same with a link to the network's explorer, if known.
 * @param {string | null} explorer
 * @param {"address" | "tx" | "block"} path
 * @param {string} text address or hash
 * @param {string} what such as "transaction hash"
 */
export function explored(explorer, path, text, what) {
  const button = copyable(text, shortened(text), what);
  if (explorer === null) return button;
  const href = `${explorer}/${path}/${encodeURIComponent(text)}`;
  const label = `Look at ${what} ${shortened(text)} in the explorer`;
  const link = el(
    "a.out",
    { href, target: "_blank", rel: "noopener noreferrer", title: href, "aria-label": label, onclick: openOutside },
    icon("out"),
  );
  return el("span.explored", null, button, link);
}

// A site that frames the report may forbid opening links; then the address is copied to the clipboard.
function openOutside(event) {
  if (window.parent === window) return;
  event.preventDefault();
  const opened = window.open("", "_blank");
  if (opened) {
    opened.opener = null;
    opened.location = event.currentTarget.href;
  } else {
    copy(event.currentTarget.href);
  }
}

const ICONS = {
  block: "M8 1.5 14 5v6l-6 3.5L2 11V5zM2 5l6 3.5L14 5M8 8.5v6",
  coverage: "M1.5 11.5 5 7l3 3 6.5-7.5M1.5 14.5h13",
  check: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M5 8.2l2.1 2.1L11 6.2",
  price:
    "M8 1.5v13M11.5 4.5c-1-1-2-1.3-3.5-1.3-2 0-3.3.9-3.3 2.4" +
    "C4.7 9 11.5 7 11.5 10.3c0 1.6-1.4 2.5-3.5 2.5-1.7 0-3-.5-4-1.6",
  clock: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M8 4.5V8l2.5 1.7",
  lock: "M3.5 7h9v7h-9zM5.5 7V4.8a2.5 2.5 0 0 1 5 0V7",
  alert: "M8 1.8 15 14H1zM8 6v3.8M8 11.6v.6",
  out: "M6 3H3v10h10v-3M9 2.5h4.5V7M13.2 2.8 7 9",
  search: "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2M10.7 10.7 14.5 14.5",
  empty: "M2 9.5 4 3h8l2 6.5V14H2zM2 9.5h3.5L6.5 11h3l1-1.5H14",
};

/** @param {keyof typeof ICONS} which @returns {SVGElement} of 16 by 16, drawn in the text's colour */
export function icon(which) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  path.setAttribute("d", ICONS[which]);
  svg.append(path);
  return svg;
}
