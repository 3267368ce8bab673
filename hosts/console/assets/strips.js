// The strips of the list: they come after the table, so that it does not wait for them.

const SVG = document.querySelector("svg").namespaceURI;
/** How long what changes waits until it is asked for again, in milliseconds. */
const PAUSE = 2_000;

/** The strips that are known, by execution, with the words of the row that they were made for. */
const known = new Map();
let asking = false;
let last = -Infinity;
let later = 0;

const cells = () => [...document.querySelectorAll("td[data-strip]")];
const words = (cell) => cell.closest("tr").querySelector(".state").className + cell.closest("tr").querySelector(".where").textContent;

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function draw(cell, strip) {
  const named = strip.says ? { role: "img", "aria-label": strip.says } : { "aria-hidden": true };
  const svg = element("svg", { class: "strip", viewBox: "0 0 132 12", ...named });
  if (strip.says) {
    const title = element("title", {});
    title.textContent = strip.says;
    svg.append(title);
  }
  for (const [kind, x, y, width, height] of strip.bars) {
    svg.append(element("rect", { class: kind, x, y, width, height }));
    if (kind === "b-undo") svg.append(element("rect", { class: "hatch", x, y, width, height }));
  }
  if (strip.bars.length === 0) svg.append(element("rect", { class: "b-none", x: 0, y: 4, width: 132, height: 4 }));
  cell.replaceChildren(svg);
}

/** Shows what is known, and asks for what is new. */
async function fill() {
  for (const head of document.querySelectorAll(".strips[hidden]")) head.hidden = false;
  const missing = [];
  for (const cell of cells()) {
    const strip = known.get(cell.dataset.strip);
    if (strip) draw(cell, strip);
    if (strip?.words !== words(cell)) missing.push(cell);
  }
  if (missing.length === 0) return;
  const wait = last + PAUSE - performance.now();
  if (asking || wait > 0) {
    later ||= setTimeout(() => {
      later = 0;
      fill();
    }, Math.max(wait, PAUSE / 4));
    return;
  }
  asking = true;
  last = performance.now();
  const of = new Map(missing.map((cell) => [cell.dataset.strip, words(cell)]));
  const query = new URLSearchParams([...of.keys()].map((id) => ["id", id]));
  try {
    const answer = await fetch(`/strips?${query}`, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return;
    for (const strip of (await answer.json()).items) known.set(strip.id, { ...strip, words: of.get(strip.id) });
    for (const cell of cells()) if (known.has(cell.dataset.strip)) draw(cell, known.get(cell.dataset.strip));
  } finally {
    asking = false;
  }
}

const now = () => fill().catch(() => {});
document.addEventListener("shown", now);
now();
