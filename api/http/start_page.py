"""The page at `/`: three cards that link to API, reports and state. It has no script and needs no other host."""

import base64
import hashlib

_STYLE = """
:root { color-scheme: light dark; --page: #f5f6f8; --card: #fff; --line: #e1e5ec; --text: #10182a; --muted: #55607a;
  --accent: #2f54d6; --code: #f2f4f7; }
@media (prefers-color-scheme: dark) { :root { --page: #0c111b; --card: #141b28; --line: #293449; --text: #e8ecf4;
  --muted: #a3aec3; --accent: #8aa4ff; --code: #1c2535; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 400 15px/1.5 "Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 56px 24px; }
h1 { margin: 0; font-size: 28px; letter-spacing: -0.02em; }
header p { margin: 4px 0 32px; color: var(--muted); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 16px; }
section { display: flex; flex-direction: column; padding: 20px; background: var(--card);
  border: 1px solid var(--line); border-radius: 10px; }
h2 { margin: 0 0 6px; font-size: 17px; }
section p { margin: 0 0 16px; color: var(--muted); }
ul { margin: auto 0 0; padding: 0; list-style: none; }
li { padding: 8px 0; border-top: 1px solid var(--line); }
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code { padding: 1px 5px; white-space: nowrap; background: var(--code); border-radius: 4px;
  font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
@media (max-width: 480px) { main { padding: 32px 16px; } }
"""

START_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Ledgermart</title>
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
<style>{_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Ledgermart</h1>
<p>Tokens and wallets, exact to the last base unit.</p>
</header>
<div class="cards">
<section>
<h2>API</h2>
<p>Every request, described and ready to try. Requests carry an API key, which <code>ledgermart init</code> printed.</p>
<ul>
<li><a href="/docs">Interactive documentation</a></li>
<li><a href="/openapi.json">OpenAPI document</a></li>
</ul>
</section>
<section>
<h2>Reports</h2>
<p>Cap tables, their changes and wallet activities. <code>ledgermart report</code> prints a link to all of them.</p>
<ul>
<li><a href="/docs#/Reports">Links to embed in your own site</a></li>
</ul>
</section>
<section>
<h2>State</h2>
<p><code>ledgermart status</code> shows how far each network is collected, and <code>ledgermart doctor</code> checks the
nodes.</p>
<ul>
<li><a href="/health/ready">Ready: can requests be answered?</a></li>
<li><a href="/health/live">Live: does the process run?</a></li>
</ul>
</section>
</div>
</main>
</body>
</html>
""".encode()

START_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
