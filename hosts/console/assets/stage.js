// The graph's size, and a stretch of the time line. Without this file the graph is as large as it was drawn; a stretch is chosen by
// the link in a step.

const STEP = 1.25;
const [LEAST, MOST] = [0.1, 3];
/** How far one drags at least, in pixels. */
const DRAG = 4;

let scale = 1;
const picture = () => document.querySelector(".canvas svg.flow");

/** Sets what differs: a large graph is laid out anew even where an attribute gets the value that it has. */
function set(svg, name, value) {
  if (svg.getAttribute(name) !== value) svg.setAttribute(name, value);
}

/** Draws the graph in its size. It is panned by scrolling. */
function draw() {
  const svg = picture();
  if (!svg) return;
  const { width, height } = svg.viewBox.baseVal;
  set(svg, "width", String(width * scale));
  set(svg, "height", String(height * scale));
  for (const button of document.querySelectorAll("[data-zoom]")) button.hidden = false;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-zoom]");
  const svg = picture();
  if (!button || !svg) return;
  const way = Number(button.dataset.zoom);
  const fit = (svg.closest(".canvas").clientWidth - 8) / svg.viewBox.baseVal.width;
  scale = Math.min(Math.max(way === 0 ? fit : scale * STEP ** way, LEAST), MOST);
  draw();
});

/** The time at a place of the line, from 0 to 1. Between two corners the line is even. */
function timeAt(corners, part) {
  const x = Math.min(Math.max(part, 0), 1) * 1000;
  const after = Math.max(corners.findIndex((corner) => corner[0] >= x), 1);
  const [[from, begin], [to, end]] = [corners[after - 1], corners[after]];
  return begin + ((end - begin) * (x - from)) / Math.max(to - from, 1);
}

let held = null;

document.addEventListener("pointerdown", (event) => {
  const axis = event.target.closest?.(".lanes .axis");
  if (!axis || event.button !== 0 || event.pointerType === "touch") return;
  const corners = axis.closest("table").dataset.corners.split(" ").map((corner) => corner.split(":").map(Number));
  if (corners.length > 1) held = { axis, corners, x: event.clientX, mark: null };
});

const partOf = (x) => {
  const box = held.axis.querySelector("svg").getBoundingClientRect();
  return Math.min(Math.max((x - box.left) / box.width, 0), 1);
};

document.addEventListener("pointermove", (event) => {
  if (!held || (!held.mark && Math.abs(event.clientX - held.x) < DRAG)) return;
  if (!held.mark) {
    const shapes = document.querySelector(".lanes #lane-back");
    held.mark = document.createElementNS(shapes.namespaceURI, "rect");
    held.mark.setAttribute("class", "brush");
    held.mark.setAttribute("height", 16);
    // What stands in the first line is drawn in all of them.
    shapes.append(held.mark);
  }
  const [one, other] = [partOf(held.x), partOf(event.clientX)];
  held.mark.setAttribute("x", Math.min(one, other) * 1000);
  held.mark.setAttribute("width", Math.abs(one - other) * 1000);
  event.preventDefault();
});

function drop() {
  held?.mark?.remove();
  held = null;
}

document.addEventListener("pointerup", (event) => {
  if (held?.mark) {
    const places = [partOf(held.x), partOf(event.clientX)].sort((one, other) => one - other);
    const [from, to] = places.map((place) => Math.round(timeAt(held.corners, place)));
    const address = new URL(location.href);
    address.searchParams.set("from", new Date(from).toISOString());
    address.searchParams.set("to", new Date(Math.max(to, from + 1)).toISOString());
    for (const gone of ["lanes", "done"]) address.searchParams.delete(gone);
    document.dispatchEvent(new CustomEvent("go", { detail: address.href }));
  }
  drop();
});
document.addEventListener("pointercancel", drop);
document.addEventListener("selectstart", (event) => held && event.preventDefault());
document.addEventListener("shown", draw);
draw();

/** Gives a node the attributes and texts of another. What is of another shape is replaced. */
function become(one, other) {
  if (one.isEqualNode(other)) return;
  const [parts, others] = [one, other].map((of) => [...of.childNodes]);
  if (one.nodeName !== other.nodeName || parts.length !== others.length) {
    return one.replaceWith(document.importNode(other, true));
  }
  if (one.nodeType !== Node.ELEMENT_NODE) return void (one.data = other.data);
  for (const { name } of [...one.attributes]) if (!other.hasAttribute(name)) one.removeAttribute(name);
  for (const { name, value } of other.attributes) set(one, name, value);
  parts.forEach((part, at) => become(part, others[at]));
}

/** Changes what differs in the graph: a step that stays where it is is not laid out anew. */
document.addEventListener("part", (event) => {
  const { part, next } = event.detail;
  const [here, drawn] = [part, next].map((of) => of.querySelector("svg.flow"));
  const [steps, others] = [here?.lastElementChild, drawn?.lastElementChild];
  if (part.dataset.part !== "graph" || !steps || !others || steps.children.length !== others.children.length) return;
  event.preventDefault();
  for (const name of ["width", "height", "viewBox"]) set(here, name, drawn.getAttribute(name));
  const heads = [here, drawn].map((of) => [...of.children].slice(0, -1));
  for (const child of heads[0]) child.remove();
  steps.before(...heads[1].map((child) => document.importNode(child, true)));
  set(steps, "transform", others.getAttribute("transform"));
  const fresh = [...others.children];
  [...steps.children].forEach((step, at) => become(step, fresh[at]));
});

// The row that is chosen is in sight, where its table scrolls by itself.
const chosen = document.querySelector(".side > [data-part]:first-child tr[aria-selected=true]");
const box = chosen?.closest(".scroll");
if (box && box.scrollHeight > box.clientHeight) box.scrollTop = Math.max(0, chosen.offsetTop - box.clientHeight / 2);
