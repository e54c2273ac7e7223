// The drawing: the subgraph's nodes in the colours of their components, its neighbours faint, anchors as diamonds.

import { colourOf } from "./dom.js";
import cytoscape from "./vendor/cytoscape.esm.min.mjs";

const STYLE = [
  { selector: "node", style: {
    label: "data(name)", "font-size": 11, color: "#1b2430", "text-valign": "bottom", "text-margin-y": 3, width: 24, height: 24,
    "background-color": "data(colour)", "text-background-color": "#fcfdfe", "text-background-opacity": 0.8, "min-zoomed-font-size": 7 } },
  { selector: "node[kind = 'inside']", style: { "font-weight": "bold", "font-size": 14, "min-zoomed-font-size": 0, "z-index": 10 } },
  { selector: "node[kind != 'inside']", style: {
    width: 12, height: 12, "background-color": "#c3ccd6", color: "#55606e", "font-size": 9, "text-background-opacity": 0.6 } },
  { selector: "node[?anchor][kind != 'inside']", style: {
    shape: "diamond", width: 16, height: 16, "background-color": "#f3e2a9", "border-width": 2, "border-color": "#7a5c00" } },
  { selector: "node[push > 0]", style: { "border-width": "data(ring)", "border-color": "#00665e" } },
  { selector: "node[push < 0]", style: { "border-width": "data(ring)", "border-color": "#a3351c", "border-style": "dashed" } },
  { selector: "edge", style: { width: 1, "line-color": "#dfe5eb", "curve-style": "haystack", "z-index": 1 } },
  { selector: "edge[?inside]", style: { width: 2.5, "line-color": "#6b7a8c", "z-index": 5 } },
  { selector: ":selected", style: { "overlay-color": "#2f7fc1", "overlay-opacity": 0.25, "overlay-padding": 5 } },
];

// Where a node begins: components on a circle, each a circle of its own; neighbours around their mean neighbour.
function places(drawing, before) {
  const found = new Map();
  const inside = drawing.nodes.filter((node) => node.kind === "inside");
  const sizes = new Map();
  for (const node of inside) sizes.set(node.component, (sizes.get(node.component) ?? 0) + 1);
  const radius = sizes.size > 1 ? 90 + 30 * sizes.size : 0;
  const met = new Map();
  for (const node of inside) {
    const angle = (2 * Math.PI * node.component) / sizes.size;
    const place = met.get(node.component) ?? 0;
    met.set(node.component, place + 1);
    const size = sizes.get(node.component);
    const own = size > 1 ? 26 * Math.sqrt(size) : 0;
    const turn = (2 * Math.PI * place) / size;
    found.set(node.id, { x: radius * Math.cos(angle) + own * Math.cos(turn), y: radius * Math.sin(angle) + own * Math.sin(turn) });
  }
  const joined = new Map();
  for (const { source, target } of drawing.edges) {
    for (const [a, b] of [[source, target], [target, source]]) {
      if (found.has(b) && !found.has(a)) joined.set(a, [...(joined.get(a) ?? []), found.get(b)]);
    }
  }
  drawing.nodes.filter((node) => node.kind !== "inside").forEach((node, i) => {
    const around = joined.get(node.id) ?? [{ x: 0, y: 0 }];
    const x = around.reduce((sum, p) => sum + p.x, 0) / around.length;
    const y = around.reduce((sum, p) => sum + p.y, 0) / around.length;
    const turn = i * 2.399963; // the golden angle
    found.set(node.id, { x: x + 110 * Math.cos(turn), y: y + 110 * Math.sin(turn) });
  });
  for (const [id, place] of before) if (found.has(id)) found.set(id, place);
  return found;
}

export function makePicture(container, onSelect) {
  let cy = null;
  let drawn = new Map();

  function start() {
    cy = cytoscape({ container, style: STYLE, maxZoom: 2.5, minZoom: 0.2, boxSelectionEnabled: false,
      // On a phone a finger on the drawing scrolls the page.
      userPanningEnabled: !matchMedia("(pointer: coarse)").matches, userZoomingEnabled: !matchMedia("(pointer: coarse)").matches,
    });
    cy.on("select", "node", (event) => onSelect(drawn.get(Number(event.target.id()))));
    cy.on("unselect", "node", () => onSelect(null));
    new ResizeObserver(() => { cy.resize(); cy.fit(undefined, 24); }).observe(container);
  }

  function show(drawing) {
    if (!cy) start();
    const before = new Map(cy.nodes().map((node) => [Number(node.id()), { ...node.position() }]));
    const place = places(drawing, before);
    drawn = new Map(drawing.nodes.map((node) => [node.id, node]));
    const inside = new Set(drawing.nodes.filter((node) => node.kind === "inside").map((node) => node.id));
    // Edges among neighbours would hide the subgraph.
    const edges = drawing.edges.filter((edge) => inside.has(edge.source) || inside.has(edge.target));
    cy.elements().remove();
    cy.add([
      ...drawing.nodes.map((node) => ({
        group: "nodes", position: place.get(node.id),
        data: { id: String(node.id), name: node.name, kind: node.kind, colour: colourOf(node.component), anchor: node.channels.length > 0, push: 0, ring: 0 },
      })),
      ...edges.map((edge) => ({
        group: "edges", data: { id: `${edge.source}-${edge.target}`, source: String(edge.source), target: String(edge.target), inside: edge.inside },
      })),
    ]);
    cy.layout({
      name: "cose", randomize: false, animate: false, fit: true, padding: 24, numIter: 600, nodeRepulsion: (node) => (node.data("kind") === "inside" ? 60000 : 12000),
      idealEdgeLength: (edge) => (edge.data("inside") ? 70 : 85), edgeElasticity: () => 160, gravity: 0.5, componentSpacing: 50,
    }).run();
    const components = `${drawing.num_components} component${drawing.num_components === 1 ? "" : "s"}`;
    container.setAttribute("aria-label",
      `Drawing: ${inside.size} nodes of the subgraph in ${components}, ${drawing.nodes.length - inside.size} of ${drawing.num_border} neighbours`);
  }

  // What each node adds, as rings.
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
    container.setAttribute("aria-label", "No subgraph yet");
  }

  return { show, push, clear };
}
