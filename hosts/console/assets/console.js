// What pages do beyond links and forms: they follow what they show. Without this file all of it works by loading again.

// The one way by which text becomes a document. It only ever gets what this server answers.
const plain = { createHTML: (text) => text };
const policy = window.trustedTypes ? window.trustedTypes.createPolicy("starbridge", plain) : plain;

const WAIT = 300;

/** A call that is made a moment later, once for all that ask for it until then. */
function calmly(work, wait) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      work();
    }, wait);
  };
}

/** Whether somebody is at work in a part: a field has changed, or a form is open. */
function isInUse(part) {
  const field = part.contains(document.activeElement) && document.activeElement.matches("input:not([type=range], [type=checkbox]), select, textarea");
  const filled = [...part.querySelectorAll("input:not([type=hidden], [type=range], [type=checkbox]), textarea")];
  if (filled.some((written) => written.value !== written.defaultValue)) return true;
  return field || part.querySelector("details.fold[open] form, form[data-sent]") !== null;
}

/** What of a part is kept when it is drawn anew: where it is scrolled to, what is open, what has the focus. */
function stateOf(part) {
  const boxes = [part, ...part.querySelectorAll(".scroll, .canvas")];
  const links = [...part.querySelectorAll("a, summary, button, input, [tabindex]")];
  return {
    scrolled: boxes.map((box) => [box.scrollLeft, box.scrollTop]),
    open: [...part.querySelectorAll("details")].map((details) => details.open),
    ticked: new Set([...part.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.name + box.value)),
    focus: part === document.activeElement ? -2 : links.indexOf(document.activeElement),
  };
}

function restore(part, kept) {
  const boxes = [part, ...part.querySelectorAll(".scroll, .canvas")];
  boxes.forEach((box, at) => {
    [box.scrollLeft, box.scrollTop] = kept.scrolled[at] ?? [0, 0];
  });
  part.querySelectorAll("details").forEach((details, at) => {
    details.open = kept.open[at] ?? details.open;
  });
  part.querySelectorAll("input[type=checkbox]").forEach((box) => {
    box.checked ||= kept.ticked.has(box.name + box.value);
  });
  const links = [...part.querySelectorAll("a, summary, button, input, [tabindex]")];
  const focused = kept.focus === -2 ? part : links[kept.focus];
  if (focused && kept.focus !== -1) focused.focus({ preventScroll: true });
}

/** Puts the parts of another page in place of those of this one. Parts that somebody works in stay. */
function replaceParts(page) {
  const wanted = new Map([...page.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  const here = [...document.querySelectorAll("[data-part]")];
  const same = here.length === wanted.size && here.every((part) => wanted.has(part.dataset.part));
  if (!same) return false;
  for (const part of here) {
    const next = wanted.get(part.dataset.part);
    if (part.outerHTML === next.outerHTML || isInUse(part)) continue;
    // Another script may know better what is to become of a part.
    if (!document.dispatchEvent(new CustomEvent("part", { detail: { part, next }, cancelable: true }))) continue;
    if (document.activeElement.id === "slider" && part.contains(document.activeElement)) {
      // Whoever holds the slider keeps it.
      document.activeElement.max = next.querySelector("#slider").max;
      for (const around of [".keys", ".where", ".incidents"]) {
        part.querySelector(around).replaceWith(document.importNode(next.querySelector(around), true));
      }
      continue;
    }
    const kept = stateOf(part);
    const drawn = document.importNode(next, true);
    part.replaceWith(drawn);
    restore(drawn, kept);
  }
  return true;
}

const parsed = (text) => new DOMParser().parseFromString(policy.createHTML(text), "text/html");

// Other scripts go to a place, or read a page, by these.
document.addEventListener("go", ({ detail }) => show(detail, true).catch(() => location.assign(detail)));
document.addEventListener("read", async ({ detail: { address, then } }) => {
  const answer = await fetch(address, { headers: { accept: "text/html" }, credentials: "same-origin" }).catch(() => null);
  if (answer?.ok && !answer.redirected) then(parsed(await answer.text()));
});

let asked = 0;

/** Shows what a page of the server says now. What is not of the same form is loaded as a whole. */
async function show(address, push) {
  const mine = ++asked;
  const answer = await fetch(address, { headers: { accept: "text/html" }, credentials: "same-origin" });
  const text = await answer.text();
  if (mine !== asked) return;
  if (!answer.ok || answer.redirected) {
    if (push) location.assign(address);
    else document.dispatchEvent(new CustomEvent("lost"));
    return;
  }
  const page = parsed(text);
  if (push) history.replaceState(null, "", address);
  if (!replaceParts(page)) {
    if (push) location.assign(address);
    else location.reload();
  }
  // What can change is another now, where it has ended.
  const live = document.querySelector("#live");
  if (live) live.dataset.topics = page.querySelector("#live")?.dataset.topics ?? "";
  document.dispatchEvent(new CustomEvent("shown"));
}

let busy = false;
let missed = false;

/** Shows what is now. One question at a time: what comes meanwhile is asked for afterwards. What is slow is asked for less often. */
async function refresh() {
  missed = busy;
  if (busy) return;
  busy = true;
  const begun = performance.now();
  await show(location.href, false).catch(() => document.dispatchEvent(new CustomEvent("lost")));
  const took = performance.now() - begun;
  setTimeout(() => {
    busy = false;
    if (missed) again();
  }, Math.min(4 * took, 5_000));
}

const again = calmly(refresh, WAIT);
document.addEventListener("changed", again);

/** The slider moves all of the page to an event. */
function travel(slider) {
  const form = new URLSearchParams(new FormData(slider.form));
  if (form.get("at") === slider.max) form.delete("at");
  if (form.get("tab") === "timeline") form.delete("tab");
  const query = form.toString();
  show(slider.form.getAttribute("action") + (query ? `?${query}` : ""), true).catch(() => slider.form.submit());
}

let moved = null;
const travelled = calmly(() => moved && travel(moved), 120);
document.addEventListener("input", (event) => {
  if (event.target.id !== "slider") return;
  moved = event.target;
  const shown = moved.form.querySelector("output b");
  if (shown) shown.textContent = moved.value;
  travelled();
});

/** Keys: the event before and after. They count only where nobody writes. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range], [type=checkbox]), select, textarea")) return;
  if (localStorage.getItem("starbridge-keys") === "off") return;
  const way = { ",": "prev", ".": "next" }[event.key];
  const link = way && document.querySelector(`.travel a[rel=${way}]`);
  if (link) show(link.href, true).catch(() => link.click());
});
