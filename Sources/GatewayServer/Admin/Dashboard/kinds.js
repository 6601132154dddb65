// Apps and their kinds, those with the longest delays for users first.

import { h, put, isInUse, table, notice } from "./dom.js";
import { get } from "./gateway.js";
import { number, seconds, plural, sampledShare, time } from "./words.js";
import { actionButton, reloadAction } from "./actions.js";

/// Orders by the share of stale widgets, then by the present delay, then by that of the last hour.
function staleFirst(a, b) {
  const rank = (kind) => [kind.looked ? kind.stale / kind.looked : 0, kind.recent?.p99 ?? -1, kind.hour?.p99 ?? -1];
  const [left, right] = [rank(a), rank(b)];
  for (let place = 0; place < left.length; place += 1) if (left[place] !== right[place]) return right[place] - left[place];
  return a.kind < b.kind ? -1 : 1;
}

export const kindsPage = {
  title: "Apps and kinds",
  async show(main, query, context) {
    const list = h("div");
    put(main, h("h1", {}, "Apps and kinds"),
      h("p", { class: "lead" }, "Kinds with the most stale widgets come first. A widget is stale from a change until its client reports the rebuild. Delivery times are measured per kind, on all channels."), list);
    const load = async () => {
      const { apps } = await get("/api/apps", context.signal);
      if (!apps.length) { put(list, notice("No app has a catalog yet. Create one with `timelinectl catalog apply FILE`.")); return; }
      if (isInUse(list)) return;
      put(list, apps.map((app) => h("section", { class: "card" },
        h("div", { class: "head" },
          h("div", {}, h("h2", {}, app.app),
            h("p", { class: "quiet small" }, summary(app))),
          h("div", { class: "buttons" },
            h("a", { href: `#/changes?app=${encodeURIComponent(app.app)}` }, "Changes"),
            h("a", { href: `#/clients?app=${encodeURIComponent(app.app)}` }, "Clients"),
            actionButton("Reload all", () => reloadAction(app.app)))),
        app.warnings.length ? h("ul", { class: "small warn" }, app.warnings.map((warning) => h("li", {}, `${warning.place}: ${warning.message}`))) : null,
        table(`Kinds of ${app.app}`, [
          { title: "Kind", head: true, cell: (kind) => [h("span", {}, kind.displayName ?? kind.kind), kind.displayName ? h("div", { class: "quiet small" }, kind.kind) : null, lacking(kind)] },
          { title: "Configured by", cell: (kind) => ({ static: "not configurable", appIntent: "user", relevance: "system", control: "Control Center" })[kind.configuration] ?? kind.configuration },
          { title: "Widgets", number: true, cell: (kind) => number(kind.widgets) },
          { title: "Stale", number: true, explains: "Of the widgets of clients picked at random", cell: staleness },
          { title: "p99, 5 min", explains: "99 of 100 notifications of the last 5 minutes came within this time of their change", number: true, cell: (kind) => seconds(kind.recent?.p99) },
          { title: "p50, 5 min", explains: "Half the notifications of the last 5 minutes came within this time of their change", number: true, cell: (kind) => seconds(kind.recent?.p50) },
          { title: "p99, 1 h", explains: "99 of 100 notifications of the last hour came within this time of their change", number: true, cell: (kind) => seconds(kind.hour?.p99) },
          { title: "Delivered, 1 h", number: true, cell: (kind) => number(kind.hour?.count ?? 0) },
          { title: "Needless", explains: "Reloads since the gateway started that were not needed: acknowledged before the push was accepted, or rebuilt without a difference", number: true, cell: (kind) => number(kind.needless ?? 0) },
          { title: "", cell: (kind) => actionButton("Reload", () => reloadAction(app.app, kind.kind), { "aria-label": `Reload ${kind.kind}` }) },
        ], [...app.kinds].sort(staleFirst)))));
    };
    await load();
    context.every(5000, load);
  },
};

function staleness(kind) {
  if (!kind.looked) return "–";
  const checked = h("div", { class: "quiet small" }, `${number(kind.stale)} of ${number(kind.looked)} checked`);
  if (!kind.stale) return [h("span", { class: "good" }, "0 %"), checked];
  return [sampledShare(kind.stale, kind.looked), checked, kind.staleSince ? h("div", { class: "quiet small" }, "oldest ", time(kind.staleSince)) : null];
}

/// Clients that no change of the kind reaches.
function lacking(kind) {
  if (!kind.clientsLacking) return null;
  return h("div", { class: "small warn" }, `No change reaches ${plural(kind.clientsLacking, "client")}: the rules bind the client's ${kind.lacking.map((name) => `“${name}”`).join(", ")}, which ${kind.clientsLacking === 1 ? "it lacks" : "they lack"}.`);
}

function summary(app) {
  const looked = app.clientsLookedAt < app.clients ? `, staleness from a sample of ${number(app.clientsLookedAt)}` : "";
  return `${plural(app.kinds.length, "kind")} · ${plural(app.clients, "client")}${looked} · catalog since entry ${number(app.catalog)}`;
}
