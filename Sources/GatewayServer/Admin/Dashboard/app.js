// Shows the page named in the address, and the gateway's status.

import { h, put, notice, select } from "./dom.js";
import { get, listen } from "./gateway.js";
import { clock, plural } from "./words.js";
import { tokenButton } from "./actions.js";
import { overviewPage } from "./overview.js";
import { kindsPage } from "./kinds.js";
import { changesPage, changePage } from "./changes.js";
import { clientsPage, clientPage } from "./clients.js";
import { deliveriesPage } from "./deliveries.js";
import { systemPage } from "./system.js";

const pages = {
  overview: [overviewPage], kinds: [kindsPage], changes: [changesPage, changePage],
  clients: [clientsPage, clientPage], deliveries: [deliveriesPage], system: [systemPage],
};
const main = document.getElementById("content"), state = document.getElementById("state");
let latest = null, leave = () => {}, isFailed = false;
const hearers = new Set();

/// A selection of apps; `null` if there is none.
export function appChoice(apps, chosen) {
  if (!apps.length) return null;
  return select(apps.map((app) => [app, app]), apps.includes(chosen) ? chosen : apps[0]);
}

function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const list = pages[name];
  const parts = rest.map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  if (!list || (parts.length && !list[1])) return { name: "overview", page: overviewPage, parts: [], query: new URLSearchParams() };
  return { name, page: parts.length > 1 ? list[1] : list[0], parts, query: new URLSearchParams(query) };
}

async function show(isFirst = false) {
  leave();
  const { name, page, parts, query } = address();
  const aborter = new AbortController(), timers = [], mine = new Set();
  leave = () => {
    aborter.abort();
    timers.forEach(clearInterval);
    mine.forEach((hearer) => hearers.delete(hearer));
  };
  for (const link of document.querySelectorAll(".pages a")) {
    if (link.getAttribute("href") === `#/${name}`) {
      link.setAttribute("aria-current", "page");
      // On a phone not all links are visible at once.
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  const context = {
    signal: aborter.signal,
    title: (text) => { document.title = `${text} – Timeline Gateway`; },
    apps: async () => (await get("/api/apps", aborter.signal)).apps.map((app) => app.app),
    go: (path, values = {}) => { location.hash = path + search(values); },
    note: (values) => history.replaceState(null, "", `#/${name}${search(values)}`),
    every: (milliseconds, task) => timers.push(setInterval(() => { if (!document.hidden) task().catch(() => {}); }, milliseconds)),
    onOverview: (hearer) => { mine.add(hearer); hearers.add(hearer); if (latest) hearer(latest); },
  };
  context.title(page.title);
  isFailed = false;
  put(main, h("h1", {}, page.title), h("p", { class: "quiet", role: "status" }, "Loading…"));
  if (!isFirst) { main.focus({ preventScroll: true }); scrollTo(0, 0); }
  try {
    await page.show(main, query, context, parts);
  } catch (error) {
    if (error.name === "AbortError" || aborter.signal.aborted) return;
    isFailed = error.status === 0;
    const needsToken = error.status === 401 || error.status === 403;
    const list = parts.length > 1 ? h("p", {}, h("a", { href: `#/${name}?app=${encodeURIComponent(parts[0])}` }, `All ${name}`)) : null;
    put(main, list, h("h1", {}, parts[1] ?? page.title), notice(error.message, true),
      h("div", { class: "buttons" }, needsToken ? tokenButton(() => show()) : h("button", { type: "button", class: "main", on: { click: () => show() } }, "Try again")));
  }
}

function search(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

function said(tone, text) {
  if (state.textContent === text) return;
  put(state, h("span", { class: tone }, text));
}

/// Greys the page out while the connection is lost: its numbers are those of before.
function lost(isLost) {
  if (document.body.classList.contains("lost") === isLost) return;
  document.body.classList.toggle("lost", isLost);
  document.title = isLost ? `⚠ ${document.title}` : document.title.replace("⚠ ", "");
  // A page that could not be loaded is loaded once the gateway answers.
  if (!isLost && isFailed) show();
}

listen({
  onEvent(name, value) {
    if (name !== "overview") return;
    latest = value;
    const critical = value.troubles.filter((trouble) => trouble.level === "critical").length, warnings = value.troubles.length - critical;
    if (critical) said("mark bad", `${plural(critical, "critical problem")}`);
    else if (warnings) said("mark warn", `${plural(warnings, "warning")}`);
    else said("mark good", "No problems");
    for (const hearer of hearers) hearer(value);
  },
  onState(what) {
    lost(what === "broken");
    if (what === "broken") said("mark bad", `Connection lost; reconnecting…${latest ? ` Data from ${clock(latest.time)}.` : ""}`);
    if (what === "token") said("mark warn", "Token required");
  },
});
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => show());
show(true);
