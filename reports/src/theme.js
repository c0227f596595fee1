/**
 * Set the page's theme before anything is drawn: `?theme=light|dark`, or else the system's preference. As a separate
 * script in the head it prevents flashes.
 */

const asked = new URLSearchParams(location.search).get("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const printing = matchMedia("print");

function apply() {
  const dark = asked === "dark" || (asked !== "light" && prefersDark.matches);
  const theme = dark && !printing.matches ? "dark" : "light"; // print is white
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("themechange"));
}

prefersDark.addEventListener("change", apply);
printing.addEventListener("change", apply);
apply();
