/**
 * A report drawn by Superset: its dashboard in a frame, with guest tokens that the API signs for this page's token.
 *
 * Superset accepts a token only in a message from the surrounding page, so links lead to this page
 * and not to Superset. The frame's address contains the allowed sites and no secret.
 */

import { embedDashboard } from "@superset-ui/embedded-sdk";

import { Failure } from "./api.js";
import { byId } from "./dom.js";
import { Page } from "./page.js";

const THEMES = { light: "default", dark: "dark", auto: "system" };
const OVER = ["expired", "denied", "not-found"]; // after these, a new request gives no guest token

const LEAST_HEIGHT = 600;
const MOST_HEIGHT = 6000;
const MEASURE_MS = 1000;

let dashboard = null;

const page = new Page(async (session) => {
  close();
  const first = await session.post("/embed/superset-token");
  refuseOtherOrigin(first.embedder);
  const tokens = [first.guestToken];
  const theme = new URLSearchParams(location.search).get("theme") ?? "auto";
  document.title = "Report";
  dashboard = await embedDashboard({
    id: first.embeddedId,
    supersetDomain: first.supersetUrl,
    mountPoint: byId("dashboard"),
    fetchGuestToken: async () => tokens.pop() ?? (await renew(session)),
    dashboardUiConfig: {
      hideTitle: true,
      filters: { expanded: false },
      urlParams: { frame: first.frame },
    },
    iframeTitle: "Dashboard",
    // Only the origin, without the path: Superset embeds dashboards only in pages of this service.
    referrerPolicy: "strict-origin",
  });
  dashboard.setThemeMode(THEMES[theme] ?? THEMES.auto);
  fit(byId("dashboard").querySelector("iframe"));
  return "ready";
});

// Superset refuses pages of another origin with a JSON text in the frame, which this page cannot read.
function refuseOtherOrigin(embedder) {
  if (embedder === null || embedder === location.origin) return;
  throw new Failure("failed", {
    detail:
      `Superset shows this dashboard only in pages of ${embedder}, but this page is at ${location.origin}. ` +
      `Set LEDGERMART_PUBLIC_URL to ${location.origin}, then start "ledgermart up" and "make superset" again.`,
  });
}

async function renew(session) {
  try {
    return (await session.post("/embed/superset-token")).guestToken;
  } catch (failure) {
    if (failure instanceof Failure && OVER.includes(failure.kind)) {
      close();
      page.fail(failure);
    }
    throw failure; // the frame retries in some seconds
  }
}

function close() {
  dashboard?.unmount();
  dashboard = null;
}

// The frame gets the height that its dashboard reports; a host that follows our height then shows all of it.
function fit(frame) {
  const bare = { margin: "0", maxWidth: "none", padding: "0" };
  for (const around of [document.body, byId("report")]) Object.assign(around.style, bare);
  Object.assign(frame.style, { border: "0", display: "block", height: `${LEAST_HEIGHT}px`, width: "100%" });
  const shown = dashboard;
  const timer = setInterval(async () => {
    if (dashboard !== shown) return clearInterval(timer);
    const { height } = await shown.getScrollSize();
    frame.style.height = `${Math.min(Math.max(height, LEAST_HEIGHT), MOST_HEIGHT)}px`;
  }, MEASURE_MS);
}

page.run();
