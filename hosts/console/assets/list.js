// A list of executions: what is chosen on its pages, what is new, and a look at a row. Without this file, what is ticked counts for
// the page, and the list is as it was loaded.

/** More that are chosen one by one do not fit into an address. */
const MOST = 150;
/** Nearer to the top, new rows come by themselves. */
const TOP = 40;

const table = () => document.querySelector("table.picked");
const boxes = () => [...document.querySelectorAll("table.picked input[name=id]")];
const idOf = (row) => row.querySelector("input[name=id]")?.value;

// ---- What is chosen, on this page and on others of the same filter.
const filter = new URLSearchParams(location.search);
for (const other of ["cursor", "done", "zone"]) filter.delete(other);
const KEY = `starbridge-chosen?${filter}`;
const chosen = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));

function tell() {
  sessionStorage.setItem(KEY, JSON.stringify([...chosen]));
  const said = document.querySelector("#chosen");
  if (!said) return;
  const elsewhere = [...chosen].filter((id) => !boxes().some((box) => box.value === id)).length;
  said.hidden = chosen.size === 0;
  document.querySelector("#choose-none").hidden = chosen.size === 0;
  said.textContent = `${chosen.size} ${said.dataset.chosen}${elsewhere ? `, ${elsewhere} ${said.dataset.elsewhere}` : ""}`;
  said.closest(".bar").classList.toggle("chosen", chosen.size > 0);
  for (const box of boxes()) box.disabled = !box.checked && chosen.size >= MOST;
}

document.addEventListener("change", (event) => {
  if (!event.target.matches?.("table.picked input[name=id]")) return;
  if (event.target.checked) chosen.add(event.target.value);
  else chosen.delete(event.target.value);
  tell();
});

document.addEventListener("click", (event) => {
  if (event.target.id !== "choose-none") return;
  chosen.clear();
  for (const box of boxes()) box.checked = false;
  tell();
});

document.addEventListener("formdata", (event) => {
  if (!event.target.querySelector("table.picked") || event.formData.get("match")) return;
  event.formData.delete("id");
  for (const id of chosen) event.formData.append("id", id);
});

// ---- Where whoever opens a row comes from: for the way back, and to the rows beside it.
function remember() {
  if (!table()) return;
  const older = document.querySelector(".foot a[rel=next]")?.getAttribute("href");
  const list = { here: location.pathname + location.search, ids: boxes().map((box) => box.value), older };
  sessionStorage.setItem("starbridge-list", JSON.stringify(list));
}

// ---- What is new waits, unless one is at the top.
let waiting = 0;

/** Whether new rows would move what somebody looks at. */
const isBusy = () => window.scrollY > TOP || chosen.size > 0 || dialog?.open || document.activeElement.closest("table.picked") !== null;

/** Puts the cells of rows that are still there in place; answers how many rows are new. */
function merge(part, next) {
  const rows = new Map([...next.querySelectorAll("table.picked tbody tr")].map((row) => [idOf(row), row]));
  for (const row of part.querySelectorAll("table.picked tbody tr")) {
    const now = rows.get(idOf(row));
    rows.delete(idOf(row));
    if (!now) continue;
    [...row.cells].forEach((cell, at) => {
      const fresh = now.cells[at];
      if (cell.matches(".box, .strips") || cell.contains(document.activeElement) || cell.isEqualNode(fresh)) return;
      cell.replaceWith(document.importNode(fresh, true));
    });
  }
  // What is not on this page because it is older is not new.
  const order = [...next.querySelectorAll("table.picked tbody tr")];
  const firstKnown = order.findIndex((row) => !rows.has(idOf(row)));
  return firstKnown === -1 ? rows.size : firstKnown;
}

document.addEventListener("part", (event) => {
  const { part, next } = event.detail;
  if (part.dataset.part !== "list" || !part.querySelector("table.picked") || !next.querySelector("table.picked") || !isBusy()) return;
  event.preventDefault();
  waiting = merge(part, next);
  const button = part.querySelector(".fresh");
  button.hidden = waiting === 0;
  button.textContent = `${waiting} ${button.dataset.new}`;
});

document.addEventListener("click", (event) => {
  if (!event.target.matches?.(".fresh")) return;
  chosen.size || window.scrollTo(0, 0);
  location.reload();
});

// ---- A look at a row, without leaving the list.
const dialog = document.querySelector("#peek");
let peeked = "";

// The link that was looked at may have been drawn anew meanwhile, so the browser does not find its way back to it.
dialog?.addEventListener("close", () => {
  const links = [...document.querySelectorAll("table.picked tbody a.name")];
  links.find((link) => link.pathname === peeked)?.focus();
});

function peek(link) {
  const then = (page) => {
    const parts = ["title", "facts", "why", "timeline"].map((name) => page.querySelector(`[data-part=${name}]`)).filter(Boolean);
    for (const part of parts) {
      part.removeAttribute("data-part");
      for (const act of part.querySelectorAll(".actions, .pane-head, details")) act.remove();
    }
    dialog.querySelector(".peeked").replaceChildren(...parts.map((part) => document.importNode(part, true)));
    dialog.querySelector("a").href = link.href;
    peeked = link.pathname;
    dialog.showModal();
  };
  document.dispatchEvent(new CustomEvent("read", { detail: { address: link.href, then } }));
}

document.addEventListener("keydown", (event) => {
  if (event.key !== " " || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (localStorage.getItem("starbridge-keys") === "off" || dialog.open || event.target.matches("input, select, textarea, button, summary")) return;
  const link = document.activeElement.closest("table.picked tr")?.querySelector("a.name");
  if (!link) return;
  event.preventDefault();
  peek(link);
});

function begin() {
  for (const box of boxes()) box.checked ||= chosen.has(box.value);
  tell();
  remember();
}
document.addEventListener("shown", begin);
begin();
