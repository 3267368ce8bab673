// Single keys. They count only where nobody writes, and can be switched off.

const OFF = "starbridge-keys";
const PLACES = { o: "/", e: "/executions", f: "/flows", q: "/queues", s: "/schedules", i: "/inbox", a: "/audit" };
/** How long after `g` a letter leads to a place, in milliseconds. */
const TOGETHER = 1500;

let going = -Infinity;

/** The row after the one with the focus, or before it. */
function move(step) {
  const links = [...document.querySelectorAll("main tbody a.name")];
  const here = document.activeElement.closest("tr");
  const at = links.findIndex((link) => link.closest("tr") === here);
  const next = links[Math.min(Math.max(at + step, 0), links.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function redrive() {
  const fold = document.querySelector(".actions details:has(form[action$='/redrive'])");
  if (!fold) return;
  fold.open = true;
  fold.querySelector("button").focus();
}

/** The field of the page's filter. */
const filter = () => document.querySelector(".filters input, main form[role=search] input:not([type=hidden])");
/** Whether somebody writes there. */
const isWriting = (place) => place.matches("input:not([type=checkbox], [type=range]), select, textarea");

const ACTS = {
  "/": () => {
    const field = filter();
    if (field) field.focus();
    else location.assign("/executions");
  },
  f: () => document.querySelector("#slider") || filter()?.focus(),
  g: () => { going = performance.now(); },
  j: () => move(1),
  k: () => move(-1),
  x: () => document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click(),
  r: redrive,
  "?": () => document.querySelector("#all-keys")?.showModal(),
};

// It is no single key, so the switch is not for it.
document.addEventListener("keydown", (event) => {
  const isJump = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === "k";
  const field = document.querySelector(".find input");
  if (!isJump || !field || isWriting(event.target) || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  field.select();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (localStorage.getItem(OFF) === "off" || document.querySelector("dialog[open]")) return;
  if (isWriting(event.target)) return;
  const place = performance.now() - going < TOGETHER ? PLACES[event.key] : undefined;
  going = -Infinity;
  const tab = /^[1-7]$/.test(event.key) ? document.querySelectorAll(".tabs a")[event.key - 1] : null;
  const act = place ? () => location.assign(place) : tab ? () => tab.click() : ACTS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const box = document.querySelector("#keys-on");
box.checked = localStorage.getItem(OFF) !== "off";
box.addEventListener("change", () => localStorage.setItem(OFF, box.checked ? "on" : "off"));
const button = document.querySelector("#show-keys");
button.hidden = false;
button.addEventListener("click", () => document.querySelector("#all-keys").showModal());
