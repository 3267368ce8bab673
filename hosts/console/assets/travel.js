// Plays a history: the slider goes on by itself. The pages come as they do when it is moved by hand.

/** Between two stops, in milliseconds; and so many stops a long history has. */
const PAUSE = 500;
const STOPS = 240;

let playing = false;
let next = 0;

const slider = () => document.querySelector("#slider");

/** Shows whether it plays. */
function mark() {
  const button = document.querySelector("#play");
  if (!button) return;
  button.hidden = false;
  button.setAttribute("aria-pressed", playing);
  button.textContent = playing ? "❚❚" : "▶";
}

function stop() {
  playing = false;
  clearTimeout(next);
  mark();
}

/** Goes on, or begins anew at the end. */
function step(begin) {
  const range = slider();
  if (!range) return stop();
  const [at, end] = [Number(range.value), Number(range.max)];
  if (at >= end && !begin) return stop();
  range.value = at >= end ? 1 : Math.min(end, at + Math.ceil(end / STOPS));
  range.dispatchEvent(new Event("input", { bubbles: true }));
}

function toggle() {
  if (playing) return stop();
  playing = true;
  mark();
  step(true);
}

document.addEventListener("click", (event) => event.target.closest?.("#play") && toggle());

document.addEventListener("keydown", (event) => {
  if (event.key !== " " || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !slider()) return;
  if (localStorage.getItem("starbridge-keys") === "off" || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input:not([type=range]), select, textarea, button, summary")) return;
  event.preventDefault();
  toggle();
});

// The page shows the stop: some time later comes the next.
document.addEventListener("shown", () => {
  mark();
  if (!playing) return;
  clearTimeout(next);
  next = setTimeout(step, PAUSE);
});

// Whoever takes the slider, or goes to an event, has it.
document.addEventListener("input", (event) => event.isTrusted && event.target.id === "slider" && stop());
document.addEventListener("lost", stop);
mark();
