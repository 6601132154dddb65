// Apps and their kinds, those first whose people wait longest.

import { h, put, card, table, notice, badge } from "./dom.js";
import { get } from "./gateway.js";
import { number, seconds, plural, time } from "./words.js";
import { actionButton, reloadAction } from "./actions.js";

/// Slowest now, then slowest in the last hour.
function staleFirst(a, b) {
  const rank = (kind) => [kind.stale ?? -1, kind.recent?.p99 ?? -1, kind.hour?.p99 ?? -1];
  const [left, right] = [rank(a), rank(b)];
  for (let place = 0; place < left.length; place += 1) if (left[place] !== right[place]) return right[place] - left[place];
  return a.kind < b.kind ? -1 : 1;
}

export const kindsPage = {
  title: "Apps and kinds",
  async show(main, query, context) {
    const list = h("div");
    put(main, h("h1", {}, "Apps and kinds"),
      h("p", { class: "lead" }, "Kinds whose people wait longest come first. Waiting is the time from a change to its notification, on all channels; a kind of that name counts in every app."), list);
    const load = async () => {
      const { apps } = await get("/api/apps", context.signal);
      if (!apps.length) { put(list, notice("No app has a catalog yet. Put one with `timelinectl catalog apply FILE`.")); return; }
      if (list.contains(document.activeElement) && document.activeElement !== document.body) return;
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
          { title: "Kind", head: true, cell: (kind) => [h("span", {}, kind.displayName ?? kind.kind), kind.displayName ? h("div", { class: "quiet small" }, kind.kind) : null] },
          { title: "Configured by", cell: (kind) => ({ static: "nobody", appIntent: "a person", relevance: "the system", control: "Control Center" })[kind.configuration] ?? kind.configuration },
          ...app.kinds.some((kind) => kind.widgets !== undefined) ? [
            { title: "Widgets", number: true, cell: (kind) => number(kind.widgets) },
          ] : [],
          ...app.sample ? [{ title: "Stale", number: true, cell: (kind) => staleness(kind) }] : [],
          { title: "99 of 100, 5 min", number: true, cell: (kind) => seconds(kind.recent?.p99) },
          { title: "Half, 5 min", number: true, cell: (kind) => seconds(kind.recent?.p50) },
          { title: "99 of 100, hour", number: true, cell: (kind) => seconds(kind.hour?.p99) },
          { title: "Told in the hour", number: true, cell: (kind) => number(kind.hour?.count ?? 0) },
          { title: "", cell: (kind) => actionButton("Reload", () => reloadAction(app.app, kind.kind), { "aria-label": `Reload ${kind.kind}` }) },
        ], [...app.kinds].sort(staleFirst)))));
    };
    await load();
    context.every(5000, load);
  },
};

function staleness(kind) {
  if (!kind.looked) return "–";
  if (!kind.staleCount) return h("span", { class: "good" }, "0 %");
  return [`${Math.round((kind.staleCount / kind.looked) * 100)} %`, kind.oldest ? h("div", { class: "quiet small" }, "oldest ", time(kind.oldest)) : null];
}

function summary(app) {
  const parts = [plural(app.kinds.length, "kind")];
  if (app.clients !== undefined) parts.push(plural(app.clients, "client"));
  if (app.sample) parts.push(`staleness from ${plural(app.sample, "client")} looked at`);
  parts.push(`catalog since entry ${number(app.catalog)}`);
  return parts.join(" · ");
}
