"""The style sheet of a report: for light and dark mode, print and phones. It refers to no other file.

Text has a contrast of at least 4.5:1 against its background, everything else 3:1 (WCAG 2.2, 1.4.3 and 1.4.11); a test
computes it. Colour is never the only sign: each standing also has a name, and its own pattern in the bars.
"""

from __future__ import annotations

import base64
import hashlib

_RULES = """
:root{color-scheme:light dark;--paper:#fff;--panel:#f6f8fa;--ink:#1b1f24;--quiet:#57606a;--line:#8c959f;--link:#0550ae;
--unasked:#1a7f37;--approved:#0969da;--refused:#9a6700;--blocked:#cf222e;--never:#57606a;--unknown:#8250df;
--unaccounted:#cf222e;--alarm:#a40e26;--alarm-panel:#fff1f1;--good-panel:#f0fbf2}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--panel:#161b22;--ink:#e6edf3;--quiet:#9da7b3;--line:#6e7681;
--link:#79c0ff;--unasked:#3fb950;--approved:#58a6ff;--refused:#d29922;--blocked:#ff7b72;--never:#9da7b3;--unknown:#bc8cff;
--unaccounted:#ff7b72;--alarm:#ff9c94;--alarm-panel:#2c1416;--good-panel:#10231a}}
*{box-sizing:border-box}
html{scroll-behavior:auto;-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:72rem;padding:1rem 1.25rem 4rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.3rem;margin:2.5rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.25rem 0 .4rem}
summary h3{display:inline;margin:0}
p{margin:.4rem 0;max-width:48rem}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--link);outline-offset:2px}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:0;margin:.5rem 0;list-style:none}
code,pre{font:.86rem/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{overflow-wrap:anywhere}
pre{margin:.3rem 0;padding:.6rem .75rem;background:var(--panel);border:1px solid var(--line);border-radius:.3rem;
white-space:pre-wrap;overflow-wrap:anywhere}
.digest{color:var(--quiet);font-size:.78rem}
.quiet,.cut{color:var(--quiet)}
.cut{font-style:italic}
.alarm,.whole,.note{max-width:none;padding:.5rem .9rem;border:1px solid var(--line);border-left:.4rem solid var(--line);
margin:.6rem 0;border-radius:.2rem}
.alarm{background:var(--alarm-panel);border-color:var(--alarm);color:var(--ink)}
.alarm strong,.mark{color:var(--alarm)}
.mark{font-weight:700;white-space:nowrap}
.whole{background:var(--good-panel);border-left-color:var(--unasked)}
.note{background:var(--panel)}
.scroll{overflow-x:auto;margin:.4rem 0;background:linear-gradient(90deg,var(--paper) 1.5rem,transparent) 0 0 local,
linear-gradient(270deg,var(--paper) 1.5rem,transparent) 100% 0 local,linear-gradient(90deg,var(--line),transparent) 0 0,
linear-gradient(270deg,var(--line),transparent) 100% 0;background-size:3rem 100%,3rem 100%,.8rem 100%,.8rem 100%;
background-repeat:no-repeat}
table{border-collapse:collapse;width:100%;font-size:.92rem}
caption{text-align:left;color:var(--quiet);padding:.2rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}
thead th{border-bottom:2px solid var(--line)}
th{font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.bar{min-width:9rem;width:40%}
td.what{min-width:14rem;overflow-wrap:anywhere}
td.why{min-width:10rem;overflow-wrap:anywhere}
td.t,th.t,th.t code{white-space:nowrap}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:.6rem;padding:0;margin:.6rem 0}
.figures div{background:var(--panel);border:1px solid var(--line);border-radius:.3rem;padding:.5rem .75rem}
.figures dt{color:var(--quiet);font-size:.85rem}
.figures dd{margin:0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums}
.figures small{display:block;font-size:.8rem;font-weight:400;color:var(--quiet)}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;margin:.4rem 0}
dl.facts dt{color:var(--quiet)}
dl.facts dd{margin:0;overflow-wrap:anywhere}
ul.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;list-style:none;padding:0;margin:.4rem 0;font-size:.9rem}
details{margin:.3rem 0}
summary{cursor:pointer;padding:.2rem 0;overflow-wrap:anywhere}
details details{margin-left:.9rem;padding-left:.6rem;border-left:2px solid var(--line)}
details.session{border:1px solid var(--line);border-radius:.3rem;padding:.3rem .8rem}
.said{border-left:.25rem solid var(--link);padding-left:.7rem;margin:.5rem 0}
.word{font-weight:600}
.alarm ul{margin:.2rem 0;padding-left:1.2rem}
div.bar{display:flex;height:1.15rem;overflow:hidden;border-bottom:1px solid var(--line)}
.swatch{display:inline-block;width:1.6rem;height:.9rem;vertical-align:-.1rem;margin-right:.35rem}
.f-unasked{background:var(--unasked)}
.f-approved{background:repeating-linear-gradient(45deg,var(--approved) 0 6px,var(--paper) 6px 8px)}
.f-refused{background:repeating-linear-gradient(-45deg,var(--refused) 0 4px,var(--paper) 4px 6px)}
.f-blocked{background:repeating-linear-gradient(0deg,var(--blocked) 0 3px,var(--paper) 3px 5px)}
.f-never{background:repeating-linear-gradient(90deg,var(--never) 0 2px,var(--paper) 2px 6px)}
.f-unknown{background:repeating-linear-gradient(90deg,var(--unknown) 0 5px,var(--paper) 5px 7px)}
.f-unaccounted{background:repeating-linear-gradient(0deg,var(--unaccounted) 0 1px,var(--paper) 1px 3px)}
@media (max-width:40rem){body{padding:.5rem .7rem 3rem}dl.facts{grid-template-columns:1fr}dl.facts dd{margin-bottom:.4rem}
details details{margin-left:.25rem;padding-left:.5rem}
.list thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.list,.list caption,.list tbody,.list tr,.list td,.list tbody th{display:block}
.list tr{border:1px solid var(--line);border-radius:.3rem;margin:.5rem 0;padding:.3rem .6rem}
.list td,.list tbody th{border:0;padding:.15rem 0;white-space:normal;text-align:left;overflow-wrap:anywhere}
.list td::before,.list tbody th::before{content:attr(data-head) ": ";color:var(--quiet);font-weight:400}}
@media print{body{max-width:none;font-size:10pt;padding:0}nav{display:none}.scroll{overflow:visible}
h2,h3{break-after:avoid}tr,.figures div{break-inside:avoid}details::details-content{content-visibility:visible;block-size:auto}}
"""
STYLE = _RULES + "".join(f".w{percent}{{width:{percent}%}}" for percent in range(1, 101))
"""The style sheet, with a class for each width of a bar. It has no text of a log, no URL and no import."""


def content_policy() -> str:
    """Return the Content-Security-Policy of the page: no loading, no scripts, and no style except STYLE.

    The policy has the hash of STYLE (CSP Level 3, 6.7.3), so that browsers ignore an injected style.
    """
    sha256 = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{sha256}'; base-uri 'none'; form-action 'none'"
