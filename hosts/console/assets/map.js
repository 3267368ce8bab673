// The map of a foreach with many items: a cell for each, drawn on a canvas. Without this file, and by keys, the bands above it and
// the table below it lead to the items.

/** How large a cell is, by how many there are at most. */
const SIZES = [[2_500, 12], [20_000, 6], [200_000, 3], [Infinity, 2]];
/** How much of its cell a state fills: those that matter most stand out without colours. */
const SHARES = { f: 1, s: 0.7, r: 0.6, c: 0.4, ".": 0.2 };

const box = () => document.querySelector("#items");
let drawn = { of: "", letters: "" };
let asked = "";

/** What is to be drawn: the same items in the same states are read once. */
const wanted = (here) => `${here.dataset.letters} ${here.dataset.counts}`;

function cellsOf(here, count) {
  const size = SIZES.find(([most]) => count <= most)[1];
  const width = here.querySelector(".scroll").clientWidth;
  const columns = Math.max(1, Math.floor(width / size));
  return { size, columns, rows: Math.ceil(count / columns) };
}

/** How each state is drawn, by its letter: the colour as the sheet has it, as a number of a picture, and how large. */
function looksOf(here, size) {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const looks = [];
  for (const shape of here.querySelectorAll("[data-letter]")) {
    const { letter } = shape.dataset;
    probe.fillStyle = getComputedStyle(shape).fill;
    probe.fillRect(0, 0, 1, 1);
    looks[letter.charCodeAt(0)] = {
      ink: new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0],
      wide: letter === "f" ? size : size - 1,
      high: Math.max(1, Math.round(size * SHARES[letter])),
    };
  }
  return looks;
}

function draw() {
  const here = box();
  if (!here || !drawn.letters || wanted(here) !== drawn.of) return;
  const begun = performance.now();
  here.hidden = false;
  const { letters } = drawn;
  const { size, columns, rows } = cellsOf(here, letters.length);
  const canvas = here.querySelector("canvas");
  const [width, height] = [columns * size, rows * size];
  canvas.width = width;
  canvas.height = height;
  const brush = canvas.getContext("2d");
  const picture = brush.createImageData(width, height);
  const dots = new Uint32Array(picture.data.buffer);
  const looks = looksOf(here, size);
  for (let at = 0, bottom = size; at < letters.length; bottom += size) {
    const end = Math.min(at + columns, letters.length);
    for (let left = 0; at < end; at += 1, left += size) {
      const { ink, wide, high } = looks[letters.charCodeAt(at)];
      for (let y = bottom - high; y < bottom; y += 1) {
        const from = y * width + left;
        for (let dot = from; dot < from + wide; dot += 1) dots[dot] = ink;
      }
    }
  }
  brush.putImageData(picture, 0, 0);
  performance.clearMeasures("map");
  performance.measure("map", { start: begun });
}

/** Reads the states where they have changed, and draws them. What is there already is drawn at once. */
async function look() {
  const here = box();
  if (!here) return;
  draw();
  const of = wanted(here);
  if (of === drawn.of || of === asked) return;
  asked = of;
  const answer = await fetch(here.dataset.letters, { credentials: "same-origin" }).catch(() => null);
  if (answer?.ok && !answer.redirected && asked === of) {
    drawn = { of, letters: await answer.text() };
    draw();
  }
  asked = "";
}

/** The item under the pointer; nothing beside the items. */
function itemAt(event) {
  const here = box();
  const canvas = event.target.closest?.("#items canvas");
  if (!here || !canvas || !drawn.letters) return null;
  const { size, columns } = cellsOf(here, drawn.letters.length);
  const at = Math.floor(event.offsetY / size) * columns + Math.floor(event.offsetX / size);
  return event.offsetX < columns * size && at < drawn.letters.length ? at : null;
}

document.addEventListener("pointermove", (event) => {
  const at = itemAt(event);
  if (at === null) return;
  const here = box();
  const word = here.querySelector(`[data-letter="${drawn.letters[at]}"]`)?.dataset.word;
  here.querySelector("output").textContent = `${at}: ${word}`;
});

document.addEventListener("click", (event) => {
  const at = itemAt(event);
  if (at !== null) document.dispatchEvent(new CustomEvent("go", { detail: `${box().dataset.item}${at}` }));
});

let width = 0;
window.addEventListener("resize", () => {
  const now = box()?.clientWidth ?? 0;
  if (now !== width) draw();
  width = now;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("shown", look);
look();
