// The drawing: nodes of the subgraph in the colours of their components, neighbours pale, anchors as diamonds.
// The server lays it out; a node that was moved by hand stays where it was put.

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

export function makePicture(container, onSelect) {
  let cy = null;
  let drawn = new Map();
  const moved = new Map();

  function start() {
    cy = cytoscape({ container, style: STYLE, maxZoom: 2.5, minZoom: 0.2, boxSelectionEnabled: false,
      // On a phone, dragging on the drawing scrolls the page.
      userPanningEnabled: !matchMedia("(pointer: coarse)").matches, userZoomingEnabled: !matchMedia("(pointer: coarse)").matches,
    });
    cy.on("select", "node", (event) => onSelect(drawn.get(Number(event.target.id()))));
    cy.on("unselect", "node", () => onSelect(null));
    cy.on("dragfree", "node", (event) => moved.set(Number(event.target.id()), { ...event.target.position() }));
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
        data: { id: String(node.id), name: node.name, kind: node.kind, colour: colourOf(node.component), anchor: node.channels.length > 0, push: 0, ring: 0 },
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

  return { show, push, clear };
}
