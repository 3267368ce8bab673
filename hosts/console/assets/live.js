// Word of changes, over one stream for all tabs of a browser: browsers allow few connections to a server. One tab leads and
// has the stream; it tells the others. A tab that is hidden neither leads nor listens.

const HIDDEN = 10_000;
const ROLL_CALL = 30_000;
const me = `${Date.now()}-${Math.random()}`;
const others = window.BroadcastChannel ? new BroadcastChannel("starbridge") : null;
const mark = () => document.querySelector("#live");
const mine = () => (away ? [] : (mark()?.dataset.topics ?? "").split(" ").filter(Boolean));

let away = false;
let leading = null;
let stream = null;
let open = "";
let last = "";
let wanted = new Map();
let soon = 0;
let fresh = true;

/** Says whether the page follows. Where nothing can change any more, nothing is said. */
function tell(on) {
  const live = mark();
  if (!live) return;
  live.hidden = mine().length === 0;
  live.className = on ? "live" : "live away";
  live.textContent = on ? live.dataset.on : live.dataset.off;
}

/** What is heard, by whichever tab. The page asks for what it shows. */
function hear({ topics, stale, on }) {
  if (on !== undefined) tell(on);
  const own = mine();
  if (own.length && (stale || topics?.some((topic) => own.includes(topic)))) {
    document.dispatchEvent(new CustomEvent("changed"));
  }
}

function say(word) {
  others?.postMessage(word);
  hear(word);
}

/** The leader watches what all tabs want to watch. */
function follow() {
  soon = 0;
  if (!leading) return;
  wanted.set(me, mine());
  const topics = [...new Set([...wanted.values()].flat())].sort().slice(0, 64).join(",");
  if (topics === open && stream && stream.readyState !== EventSource.CLOSED) return;
  stream?.close();
  stream = null;
  // What changed between the page and the stream is not told: each page asks once when it is first watched.
  let unheard = topics.split(",").filter((topic) => !open.split(",").includes(topic));
  open = topics;
  if (!topics) return;
  const query = new URLSearchParams({ topics, ...(last && { last }) });
  stream = new EventSource(`/stream?${query}`);
  const note = (event) => {
    last = event.lastEventId || last;
    const told = [...JSON.parse(event.data).topics, ...unheard];
    unheard = [];
    return told;
  };
  stream.addEventListener("begun", (event) => say({ topics: note(event), on: true }));
  stream.addEventListener("changed", (event) => say({ topics: note(event), on: true }));
  stream.addEventListener("stale", (event) => {
    note(event);
    say({ stale: true, on: true });
  });
  stream.onerror = () => {
    say({ on: false });
    // A stream that is refused does not come back by itself.
    if (stream?.readyState === EventSource.CLOSED) later(HIDDEN);
  };
}

function later(wait = 50) {
  soon ||= setTimeout(follow, wait);
}

function lead() {
  return new Promise((done) => {
    if (away) return done();
    leading = done;
    wanted = new Map();
    others?.postMessage({ who: true });
    later();
  });
}

function stop() {
  stream?.close();
  stream = null;
  open = "";
  leading?.();
  leading = null;
}

let waiting = null;
/** Without locks, each tab leads itself. */
function run() {
  others?.postMessage({ tab: me, wants: mine(), fresh });
  fresh = false;
  if (leading || mine().length === 0) return later();
  if (!navigator.locks) return void lead();
  if (waiting) return;
  waiting = new AbortController();
  const { signal } = waiting;
  navigator.locks
    .request("starbridge", { signal }, () => lead())
    .catch(() => {})
    .finally(() => {
      waiting = null;
      if (!away) setTimeout(run, 50);
    });
}

if (others) {
  others.onmessage = ({ data }) => {
    if (data.who) others.postMessage({ tab: me, wants: mine() });
    if (data.tab && leading) {
      wanted.set(data.tab, data.wants);
      later();
      if (stream?.readyState === EventSource.OPEN) others.postMessage({ on: true });
      if (data.fresh) others.postMessage({ topics: data.wants });
    }
    if (!data.tab && !data.who) hear(data);
  };
}

// Tabs that ended without a word are forgotten.
setInterval(() => {
  if (!leading || !others) return;
  wanted = new Map();
  others.postMessage({ who: true });
  later(1_000);
}, ROLL_CALL);

let hidden = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) {
    hidden = setTimeout(() => {
      away = true;
      if (!leading) waiting?.abort();
      others?.postMessage({ tab: me, wants: [] });
      stop();
    }, HIDDEN);
  } else if (away) {
    away = false;
    run();
    hear({ stale: true });
  }
});
window.addEventListener("pagehide", () => {
  others?.postMessage({ tab: me, wants: [] });
  stop();
});
window.addEventListener("pageshow", ({ persisted }) => persisted && run());
document.addEventListener("shown", () => {
  if (mine().length === 0) tell(false);
  run();
});
document.addEventListener("lost", () => tell(false));

run();
