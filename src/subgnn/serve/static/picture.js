// The drawing: nodes of the subgraph in the colours of their components, neighbours pale, anchors as diamonds.
// The server lays it out; a node that was moved by hand stays where it was put.

import { componentColour, variable } from "./dom.js";
import cytoscape from "./vendor/cytoscape.esm.min.mjs";

const styleNow = () => [
  { selector: "node", style: {
    label: "data(name)", "font-size": 11, color: variable("--ink"), "text-valign": "bottom", "text-margin-y": 3, width: 24, height: 24,
    "background-color": (node) => variable(node.data("colour")), "text-background-color": variable("--canvas"), "text-background-opacity": 0.8,
    "min-zoomed-font-size": 7 } },
  { selector: "node[kind = 'inside']", style: { "font-weight": "bold", "font-size": 14, "min-zoomed-font-size": 0, "z-index": 10 } },
  { selector: "node[kind != 'inside']", style: {
    width: 12, height: 12, "background-color": variable("--border-node"), color: variable("--quiet"), "font-size": 9, "text-background-opacity": 0.6 } },
  { selector: "node[?anchor][kind != 'inside']", style: {
    shape: "diamond", width: 16, height: 16, "background-color": variable("--anchor"), "border-width": 2, "border-color": variable("--anchor-edge") } },
  { selector: "node[push > 0]", style: { "border-width": "data(ring)", "border-color": variable("--for") } },
  { selector: "node[push < 0]", style: { "border-width": "data(ring)", "border-color": variable("--against"), "border-style": "dashed" } },
  { selector: "edge", style: { width: 1, "line-color": variable("--outer-edge"), "curve-style": "haystack", "z-index": 1 } },
  { selector: "edge[?inside]", style: { width: 2.5, "line-color": variable("--inner-edge"), "z-index": 5 } },
  { selector: ":selected", style: { "overlay-color": variable("--focus"), "overlay-opacity": 0.25, "overlay-padding": 5 } },
];

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, typeof value === "number" ? value.toFixed(1) : value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawNode(node) {
  const { x, y } = node.position();
  const [radius, border, font] = ["width", "border-width", "font-size"].map((name) => node.numericStyle(name) / (name === "width" ? 2 : 1));
  const look = { fill: node.style("background-color"), ...(border ? { stroke: node.style("border-color"), "stroke-width": border } : {}),
    ...(border && node.style("border-style") === "dashed" ? { "stroke-dasharray": "5 4" } : {}) };
  const mark = node.style("shape") === "diamond"
    ? shape("polygon", { points: [[x, y - radius], [x + radius, y], [x, y + radius], [x - radius, y]].map((at) => at.map((v) => v.toFixed(1)).join(",")).join(" "), ...look })
    : shape("circle", { cx: x, cy: y, r: radius, ...look });
  const label = shape("text", { x, y: y + radius + font + 3, "font-size": font, fill: node.style("color"), "text-anchor": "middle",
    "font-weight": node.data("kind") === "inside" ? "bold" : "normal", stroke: variable("--canvas"), "stroke-width": 3, "paint-order": "stroke" }, node.data("name"));
  return [mark, label];
}

export function makePicture(container, onSelect) {
  let cy = null;
  let drawn = new Map();
  const moved = new Map();

  function start() {
    cy = cytoscape({ container, style: styleNow(), maxZoom: 2.5, minZoom: 0.2, boxSelectionEnabled: false,
      // On a phone, dragging on the drawing scrolls the page.
      userPanningEnabled: !matchMedia("(pointer: coarse)").matches, userZoomingEnabled: !matchMedia("(pointer: coarse)").matches,
    });
    cy.on("select", "node", (event) => onSelect(drawn.get(Number(event.target.id()))));
    cy.on("unselect", "node", () => onSelect(null));
    cy.on("dragfree", "node", (event) => moved.set(Number(event.target.id()), { ...event.target.position() }));
    addEventListener("themechange", () => cy.style(styleNow()));
    new ResizeObserver(() => { cy.resize(); cy.fit(undefined, 24); }).observe(container);
  }

  function show(drawing) {
    if (!cy) start();
    drawn = new Map(drawing.nodes.map((node) => [node.id, node]));
    const inside = new Set(drawing.nodes.filter((node) => node.kind === "inside").map((node) => node.id));
    // Edges among neighbours would hide the subgraph.
    const edges = drawing.edges.filter((edge) => inside.has(edge.source) || inside.has(edge.target));
    cy.elements().remove();
    cy.add([
      ...drawing.nodes.map((node) => ({
        group: "nodes", position: moved.get(node.id) ?? { x: node.x, y: node.y },
        data: { id: String(node.id), name: node.name, kind: node.kind, colour: componentColour(node.component), anchor: node.channels.length > 0, push: 0, ring: 0 },
      })),
      ...edges.map((edge) => ({
        group: "edges", data: { id: `${edge.source}-${edge.target}`, source: String(edge.source), target: String(edge.target), inside: edge.inside },
      })),
    ]);
    cy.fit(undefined, 24);
    const components = `${drawing.num_components} component${drawing.num_components === 1 ? "" : "s"}`;
    container.setAttribute("aria-label",
      `Drawing: ${inside.size} nodes of the subgraph in ${components}, ${drawing.nodes.length - inside.size} of ${drawing.num_border} neighbours`);
  }

  // Contributions of nodes, as rings.
  function push(byNode) {
    if (!cy) return;
    const largest = Math.max(1e-9, ...[...byNode.values()].map(Math.abs));
    cy.batch(() => {
      for (const node of cy.nodes("[kind = 'inside']")) {
        const value = byNode.get(Number(node.id())) ?? 0;
        const ring = Math.abs(value) / largest < 0.05 ? 0 : 2 + (5 * Math.abs(value)) / largest;
        node.data({ push: ring ? value : 0, ring });
      }
    });
  }

  function clear() {
    cy?.elements().remove();
    drawn = new Map();
    moved.clear();
    container.setAttribute("aria-label", "No subgraph yet");
  }

  const png = () => cy.png({ output: "blob", full: true, scale: 2, bg: variable("--canvas") });

  function svg() {
    const { x1, y1, w, h } = cy.elements().boundingBox();
    const [left, top, width, height] = [x1 - 12, y1 - 12, w + 24, h + 24];
    const whole = shape("svg", { xmlns: SVG, viewBox: [left, top, width, height].map((v) => v.toFixed(1)).join(" "), width, height, "font-family": "system-ui, sans-serif" });
    whole.append(shape("title", {}, container.getAttribute("aria-label")), shape("rect", { x: left, y: top, width, height, fill: variable("--canvas") }));
    const byDepth = (some) => some.sort((a, b) => a.numericStyle("z-index") - b.numericStyle("z-index")).toArray();
    for (const edge of byDepth(cy.edges())) {
      const [a, b] = [edge.source().position(), edge.target().position()];
      whole.append(shape("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, stroke: edge.style("line-color"), "stroke-width": edge.numericStyle("width") }));
    }
    for (const node of byDepth(cy.nodes())) whole.append(...drawNode(node));
    return new XMLSerializer().serializeToString(whole);
  }

  return { show, push, clear, png, svg };
}
