// A form is sent once: its buttons wait until the answer comes. Without this file the server sees to it alone.

/** How long a form that was sent waits for its answer, in milliseconds. */
const PATIENCE = 10_000;

function free(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("button[data-off]")) {
    button.disabled = false;
    delete button.dataset.off;
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.getAttribute("method") !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "true";
  // What is disabled is not sent: the fields are read before this is done.
  setTimeout(() => {
    for (const button of form.querySelectorAll("button:enabled")) {
      button.disabled = true;
      button.dataset.off = "true";
    }
  });
  setTimeout(() => free(form), PATIENCE);
});

// Whoever comes back to a page and sends its form again means it.
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) free(form);
  for (const field of document.querySelectorAll("input[name=once]")) field.value = `${Date.now()}-${Math.random()}`;
});
