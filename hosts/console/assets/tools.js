// What copies, and the zone of the browser. Without this file, one marks and copies by hand, and writes the zone.

const root = document.documentElement;

/** Copies a text. Browsers offer their clipboard on the loopback and with TLS only; else what is marked can be copied. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not copied");
}

/** Copies, and says so for a moment where the button stands. */
async function tell(button, text) {
  await copy(text);
  const before = [...button.childNodes];
  button.replaceChildren(root.dataset.copied);
  setTimeout(() => button.replaceChildren(...before), 1_500);
}

/** Beside each line that is to be copied, a button. */
function offer() {
  for (const code of document.querySelectorAll("code[data-copy]:not(:has(+ .copy))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "tool copy";
    button.textContent = code.dataset.copy || root.dataset.copy;
    code.after(button);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.copy");
  if (button) tell(button, button.previousElementSibling.textContent).catch(() => {});
});

// A link that was copied shows times as whoever sent it sees them.
const link = document.querySelector("#copy-link");
link.hidden = false;
link.addEventListener("click", () => {
  const address = new URL(location.href);
  for (const once of ["done", "zone"]) address.searchParams.delete(once);
  address.searchParams.set("zone", root.dataset.zone);
  tell(link, address.href).catch(() => {});
});

const mine = Intl.DateTimeFormat().resolvedOptions().timeZone;
const here = document.querySelector("#zone-here");
if (mine) {
  here.hidden = false;
  here.value = mine;
  here.title = mine;
}
const zones = document.querySelector("#zones");
document.querySelector(".zone").addEventListener("toggle", () => {
  if (zones.children.length > 1 || !Intl.supportedValuesOf) return;
  for (const name of Intl.supportedValuesOf("timeZone")) {
    const option = document.createElement("option");
    option.value = name;
    zones.append(option);
  }
});

document.addEventListener("shown", offer);
offer();
