// Dragging over the bars of the last day chooses a span of time. Without this file, and by keys, each hour is a link.

const QUARTER = 900_000;
const STEP = 10;
const LEAST = 4;

let held = null;
let dragged = false;

/** The quarter under the pointer, counted from the first. */
function quarterAt(svg, x) {
  const box = svg.getBoundingClientRect();
  const count = svg.viewBox.baseVal.width / STEP;
  return Math.min(Math.max(Math.floor(((x - box.left) / box.width) * count), 0), count - 1);
}

document.addEventListener("pointerdown", (event) => {
  const svg = event.target.closest?.("svg.day");
  dragged = false;
  if (!svg || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  held = { svg, x: event.clientX, from: quarterAt(svg, event.clientX), mark: null };
});

document.addEventListener("pointermove", (event) => {
  if (!held || (!held.mark && Math.abs(event.clientX - held.x) < LEAST)) return;
  dragged = true;
  if (!held.mark) {
    held.mark = document.createElementNS(held.svg.namespaceURI, "rect");
    held.mark.setAttribute("class", "span");
    held.mark.setAttribute("height", 60);
    held.svg.append(held.mark);
  }
  const to = quarterAt(held.svg, event.clientX);
  held.mark.setAttribute("x", Math.min(held.from, to) * STEP);
  held.mark.setAttribute("width", (Math.abs(to - held.from) + 1) * STEP);
});

document.addEventListener("pointerup", (event) => {
  const mine = held;
  held = null;
  if (!mine?.mark) return;
  const to = quarterAt(mine.svg, event.clientX);
  const begin = Number(mine.svg.dataset.begin);
  const time = (quarter) => encodeURIComponent(new Date(begin + quarter * QUARTER).toISOString().replace(".000Z", "Z"));
  const [first, last] = [Math.min(mine.from, to), Math.max(mine.from, to) + 1];
  location.assign(`${mine.svg.dataset.within}endedFrom=${time(first)}&endedTo=${time(last)}`);
});

document.addEventListener("pointercancel", () => {
  held?.mark?.remove();
  held = null;
});

// What was dragged over is no click on a link, and no link is dragged away.
document.addEventListener("click", (event) => dragged && event.target.closest("svg.day") && event.preventDefault(), true);
document.addEventListener("dragstart", (event) => event.target.closest?.("svg.day") && event.preventDefault());
