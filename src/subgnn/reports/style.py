"""The style sheet of a page: light and dark, narrow and wide, with colours that most eyes tell apart.

Colours after Okabe and Ito (2008); each is also told by a dash, a shape, a word or a number.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --back: #fbfbfa; --panel: #ffffff; --text: #1c1f23; --faint: #5c636b; --line: #dcdfe3; --grid: #eceef0;
  --blue: #0072b2; --blue-rgb: 0 114 178; --orange: #b95000; --border-node: #a9afb6;
  --c0: #0072b2; --c1: #e69f00; --c2: #009e73; --c3: #cc79a7; --c4: #56b4e9; --c5: #d55e00; --c6: #8f8200;
  --c7: #7a5195;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171a; --panel: #1c2024; --text: #e8eaec; --faint: #a3abb3; --line: #363c42; --grid: #2a2f34;
    --blue: #56b4e9; --blue-rgb: 86 180 233; --orange: #f0a030; --border-node: #737b83;
    --c0: #4aa3dc; --c1: #e69f00; --c2: #1fbf90; --c3: #dd93bb; --c4: #9bd5f5; --c5: #f07c35; --c6: #c9b82e;
    --c7: #b08ad0;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 0 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .5rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
a { color: var(--blue); }
section { background: var(--panel); border: 1px solid var(--line); border-radius: .6rem; padding: 1.1rem 1.2rem;
  margin: 1.1rem 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; list-style: none; padding: 0; margin: .8rem 0 0; }
footer { color: var(--faint); font-size: .85rem; padding-bottom: 2rem; }
.note, .lead { color: var(--faint); }
.note { font-size: .85rem; }
.warn { border-left: 4px solid var(--orange); padding-left: .7rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 0 0 1rem; }
.tiles div { flex: 1 1 8rem; border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.tiles dt { color: var(--faint); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.6rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tiles dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--faint); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: .5rem 1.5rem;
  margin: 0 0 1rem; }
.facts dt { color: var(--faint); font-size: .85rem; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); font-size: .85rem; padding-bottom: .35rem; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { font-size: .85rem; font-weight: 600; vertical-align: bottom; }
th:first-child { text-align: left; padding-left: 0; font-weight: 500; overflow-wrap: break-word;
  max-width: 15rem; }
.scores th, .matrix thead th:first-child { white-space: nowrap; }
.matrix td { text-align: center; border: 1px solid var(--line); min-width: 4rem;
  background: rgb(var(--blue-rgb) / calc(var(--share) * .45)); }
.matrix td.same { outline: 2px solid var(--text); outline-offset: -3px; }
.matrix td small { display: block; color: var(--text); opacity: .85; }
.matrix thead th { text-align: center; max-width: 9rem; overflow-wrap: break-word; }
.matrix thead th:first-child { text-align: left; }
.parts td { min-width: 5.5rem; width: 34%; }
.parts { width: 100%; }
.parts small { color: var(--faint); white-space: nowrap; }
figure { margin: 0; }
figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .3rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1.2rem 1.8rem;
  align-items: start; }
.subgraphs { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 12.5rem), 1fr)); gap: 1rem; }
.subgraphs figure { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem; }
.subgraphs figcaption { font-size: .85rem; font-weight: 400; overflow-wrap: anywhere; }
.subgraphs .note { margin: 0; font-size: .78rem; }
svg.chart, svg.subgraph { display: block; width: 100%; height: auto; }
svg.chart { max-width: 32rem; }
svg text { fill: var(--faint); font: 12px system-ui, sans-serif; }
svg .tick.x, svg .label { text-anchor: middle; }
svg .tick.y { text-anchor: end; }
svg .mark { fill: var(--text); }
svg .grid { stroke: var(--grid); }
svg .axis { stroke: var(--faint); }
svg polyline, svg path { fill: none; }
svg .first { stroke: var(--blue); stroke-width: 2; stroke-linejoin: round; }
svg .second { stroke: var(--orange); stroke-width: 2; stroke-dasharray: 5 3; stroke-linejoin: round; }
svg .chosen { stroke: var(--text); stroke-width: 1.2; stroke-dasharray: 2 3; }
svg .even { stroke: var(--faint); stroke-dasharray: 4 4; }
svg .range { stroke: var(--blue); stroke-width: 1.5; opacity: .6; }
svg .point { fill: var(--blue); stroke: var(--panel); stroke-width: .8; }
svg .cloud { fill: var(--blue); fill-opacity: .55; }
svg .hover { fill: transparent; }
svg .hover:hover { fill: rgb(var(--blue-rgb) / .15); }
svg.bar { display: block; width: 100%; height: .9rem; }
svg .bar { fill: var(--blue); }
svg .minus { fill: var(--orange); }
svg .edge { stroke: var(--faint); stroke-width: 1; }
svg .cut { stroke: var(--border-node); stroke-width: .6; opacity: .8; }
svg .border { fill: var(--border-node); }
svg .node { stroke: var(--panel); stroke-width: .8; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); } .c7 { fill: var(--c7); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem; margin: .2rem 0 0; }
.key span { display: inline-flex; align-items: center; gap: .4rem; }
pre { overflow-x: auto; background: var(--back); border: 1px solid var(--line); border-radius: .4rem; padding: .7rem;
  font-size: .85rem; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--blue); }
@media (max-width: 30rem) {
  section { padding: .9rem .8rem; }
  table { font-size: .83rem; }
  th, td { padding: .3rem .25rem; }
  tbody th:first-child { max-width: 7.5rem; }
  .facts div { display: grid; grid-template-columns: 7.5rem 1fr; gap: .5rem; }
  .facts.long div { display: block; }
  .subgraphs { grid-template-columns: 1fr 1fr; gap: .6rem; }
  .scores th { white-space: normal; }
  .scores tbody th { white-space: nowrap; }
}
@media print { section { break-inside: avoid; } }
"""
