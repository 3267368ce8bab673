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

// Whoever came from a list goes on to the executions beside this one, and back to the list as it was.
const list = JSON.parse(sessionStorage.getItem("starbridge-list") ?? "null");
const here = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const at = list ? list.ids.indexOf(here) : -1;
const beside = (way) => list?.ids[at + way];
const wayTo = (id) => `/executions/${encodeURIComponent(id)}`;

function offer() {
  const crumbs = document.querySelector(".crumbs");
  crumbs.querySelector("a").href = list.here;
  const box = document.createElement("span");
  box.className = "beside";
  for (const [way, sign] of [[-1, "‹"], [1, "›"]]) {
    const id = beside(way);
    const link = document.createElement(id ? "a" : "span");
    link.className = "tool";
    link.textContent = sign;
    if (id) {
      link.href = wayTo(id);
      link.rel = way < 0 ? "prev" : "next";
      link.ariaLabel = crumbs.dataset[way < 0 ? "before" : "after"];
    }
    box.append(link);
  }
  box.firstChild.after(`${at + 1} / ${list.ids.length}`);
  crumbs.querySelector("a").after(box);
}
if (at >= 0) offer();

/** The next event after the one that is shown that tells of a failure; after the last, the first. */
function nextFailed() {
  const range = slider();
  if (!range) return;
  const find = (from, again) => {
    const then = (page) => {
      const link = page.querySelector("[data-part=events] tbody td.num a");
      if (!link) return void (again && find(1, false));
      const to = new URL(location.href);
      to.searchParams.set("at", link.textContent);
      document.dispatchEvent(new CustomEvent("go", { detail: to.href }));
    };
    const address = `${location.pathname}?tab=events&failed=true&events=${from}`;
    document.dispatchEvent(new CustomEvent("read", { detail: { address, then } }));
  };
  find(range.value === range.max ? 1 : Number(range.value) + 1, true);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (localStorage.getItem("starbridge-keys") === "off" || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input:not([type=range], [type=checkbox]), select, textarea")) return;
  const id = event.key === "[" ? beside(-1) : event.key === "]" ? beside(1) : undefined;
  if (id) location.assign(wayTo(id));
  if (event.key === "f") nextFailed();
});
