/**
 * A report that Superset draws: its dashboard in a frame, opened with guest tokens that the API signs for this page's token.
 *
 * Superset takes a token from the page around it alone, by a message, so its address can be put into no link: this page is
 * what links lead to. The frame's address carries which sites may be around it, and nothing secret.
 */

import { embedDashboard } from "@superset-ui/embedded-sdk";

import { Failure } from "./api.js";
import { byId } from "./dom.js";
import { Page } from "./page.js";

const THEMES = { light: "default", dark: "dark", auto: "system" };
const OVER = ["expired", "denied", "not-found"]; // after these no further guest token comes by asking again

let dashboard = null;

const page = new Page(async (session) => {
  close();
  const first = await session.post("/embed/superset-token");
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
    // This origin, and nothing of the address: Superset embeds dashboards in pages of this service alone.
    referrerPolicy: "strict-origin",
  });
  dashboard.setThemeMode(THEMES[theme] ?? THEMES.auto);
  fit(byId("dashboard").querySelector("iframe"));
  return "ready";
});

async function renew(session) {
  try {
    return (await session.post("/embed/superset-token")).guestToken;
  } catch (failure) {
    if (failure instanceof Failure && OVER.includes(failure.kind)) {
      close();
      page.fail(failure);
    }
    throw failure; // the frame asks again in some seconds
  }
}

function close() {
  dashboard?.unmount();
  dashboard = null;
}

// The dashboard scrolls inside its frame, which takes the place that this page has.
function fit(frame) {
  Object.assign(frame.style, { border: "0", display: "block", height: "calc(100dvh - 4px)", width: "100%" });
  Object.assign(document.body.style, { margin: "0", maxWidth: "none", padding: "0" });
  Object.assign(byId("report").style, { margin: "0", maxWidth: "none", padding: "0" });
}

page.run();
