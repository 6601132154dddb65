// The changes as they arrive, and the reasons for the reloads that each caused.

import { h, put, isInUse, card, table, facts, notice, badge, field, select } from "./dom.js";
import { get, appPath } from "./gateway.js";
import { number, plural, time, moment, say } from "./words.js";
import { appChoice } from "./app.js";

export const changesPage = {
  title: "Changes",
  async show(main, query, context) {
    const apps = await context.apps();
    const list = h("div"), more = h("div", { class: "buttons" });
    const choice = appChoice(apps, query.get("app"));
    const text = (name, placeholder) => {
      const input = h("input", { type: "search", placeholder, autocomplete: "off", spellcheck: "false", size: 14 });
      input.value = query.get(name) ?? "";
      return input;
    };
    const inputs = { entity: text("entity", "CharacterDetail"), entityID: text("entityID", "panda"), kind: text("kind", "com.mygame.quests"), source: text("source", "/game/rounds") };
    const outcome = select([["", "all"], ["true", "no rule"]], query.get("unmatched") ?? "");
    const pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
    const form = h("form", { class: "filters", role: "search" }, choice ? field("App", choice) : null,
      field("Entity", inputs.entity), field("Id", inputs.entityID), field("Kind", inputs.kind), field("Source", inputs.source), field("Matched", outcome),
      h("button", { type: "submit", class: "main" }, "Show"), pause);
    const apply = (event) => {
      event?.preventDefault();
      const given = Object.entries(inputs).map(([name, input]) => [name, input.value.trim() || null]);
      context.go("/changes", { app: choice.value, ...Object.fromEntries(given), unmatched: outcome.value || null });
    };
    form.addEventListener("submit", apply);
    put(main, h("h1", {}, "Changes"),
      h("p", { class: "lead" }, "Newest first, updated live while neither the pointer nor the focus is in the list. Open a change to see which rules it matched, which clients it affected, and how it was delivered."),
      choice ? form : null, list, more);
    if (!choice) { put(list, notice("No app has a catalog yet, so there are no changes. Create one with `timelinectl catalog apply FILE`.")); return; }
    for (const one of [choice, outcome]) one.addEventListener("change", apply);
    const app = choice.value;
    const filters = new URLSearchParams();
    for (const name of [...Object.keys(inputs), "unmatched"]) if (query.get(name)) filters.set(name, query.get(name));
    let isPaused = false;
    pause.addEventListener("click", () => {
      isPaused = !isPaused;
      pause.setAttribute("aria-pressed", String(isPaused));
      pause.textContent = isPaused ? "Go on" : "Pause";
    });

    // A filtered list is searched for in the log, which costs more than its newest page.
    const pace = filters.size ? 5000 : 0;
    let rows = [], before, known = 0, head = -1, busy = false, asked = 0;
    const columns = [
      { title: "Entry", head: true, cell: (change) => h("a", { href: `#/changes/${encodeURIComponent(app)}/${change.sequence}` }, number(change.sequence)) },
      { title: "When", isPlain: true, cell: (change) => moment(change.time) },
      { title: "What", isPlain: true, cell: (change) => [`${change.operation} `, h("strong", {}, change.entity), change.entityID ? [" ", h("code", {}, change.entityID)] : null, change.properties?.length ? h("div", { class: "quiet small" }, change.properties.join(", ")) : null] },
      { title: "Matched", isPlain: true, explains: "The kinds with a rule that it matches, and how many of their keys it made stale: a key is a rule with its values, such as one character", cell: (change) => matched(change) },
      { title: "Event", isExtra: true, cell: (change) => change.id ? h("code", { class: "small" }, `${change.source ?? ""} ${change.id}`) : "–" },
    ];
    const draw = () => {
      put(more, before === undefined ? null : h("button", { type: "button", on: { click: older } }, filters.size ? `Search before entry ${number(before)}` : "Older changes"));
      if (!rows.length) { put(list, notice(!filters.size ? "The log has no changes. They appear here when backends post them." : before === undefined ? "No change in the log matches." : `No change since entry ${number(before)} matches.`)); return; }
      put(list, h("section", { class: "card" }, table(`Changes of ${app}`, columns, rows, { rowClass: (change) => change.sequence > known && known ? "fresh-row" : null })));
    };
    const ask = (last) => {
      const parameters = new URLSearchParams(filters);
      parameters.set("limit", "50");
      if (last !== undefined) parameters.set("before", last);
      return get(`${appPath(app, "changes")}?${parameters}`, context.signal);
    };
    const older = async () => {
      const page = await ask(before);
      rows = [...rows, ...page.changes].slice(0, 1000);
      before = rows.length < 1000 ? page.before : undefined;
      draw();
    };
    const newest = async () => {
      const page = await ask();
      if ([list, more].some(isInUse) || isPaused) return false;
      const last = rows[0]?.sequence ?? 0;
      const fresh = page.changes.filter((change) => change.sequence > last);
      if (rows.length && fresh.length && fresh.length === page.changes.length && page.before !== undefined) { rows = fresh; before = page.before; }
      else { rows = [...fresh, ...rows].slice(0, 1000); before ??= page.before; }
      known = last;
      if (!rows.length || fresh.length) draw();
      return true;
    };
    await newest();
    draw();
    context.onOverview(async (overview) => {
      if (overview.log.head === head || busy || isPaused || [list, more].some(isInUse) || Date.now() - asked < pace) return;
      busy = true;
      asked = Date.now();
      try { if (await newest()) head = overview.log.head; } catch { /* The state line says it. */ } finally { busy = false; }
    });
  },
};

function matched(change) {
  if (change.unmatched) return badge("no rule", "warn");
  const kinds = Object.entries(change.kinds ?? {});
  const said = kinds.slice(0, 3).map(([kind, count]) => count === 1 ? kind : `${kind} (${plural(count, "key")})`).join(", ");
  return [said || "–", kinds.length > 3 ? ` and ${kinds.length - 3} more` : null, change.broad ? [" ", badge("all clients", "warn")] : null];
}

export const changePage = {
  title: "Change",
  async show(main, query, context, [app, sequence]) {
    context.title(`Change ${sequence}`);
    const body = h("div");
    let shown = "";
    const load = async () => {
      const change = await get(appPath(app, "changes", sequence, "explain"), context.signal);
      const text = JSON.stringify(change);
      if (text === shown || isInUse(body)) return;
      shown = text;
      put(body, explained(app, change));
    };
    await load();
    put(main, body);
    context.every(5000, load);
  },
};

function explained(app, change) {
  const holders = change.holders, outcomes = change.outcomes;
  return [
    h("p", {}, h("a", { href: `#/changes?app=${encodeURIComponent(app)}` }, "All changes")),
    h("h1", {}, `Change ${number(change.sequence)}`),
    h("p", { class: "lead" }, verdict(change)),
    h("div", { class: "cards" },
      card("Posted change", facts([
        ["App", app], ["When", moment(change.time)],
        ["Entity", [change.entity, change.entityID ? [" ", h("code", {}, change.entityID)] : null]],
        ["Operation", change.operation], ["Properties", change.properties?.join(", ") ?? "any"],
        ["Urgency", change.urgency],
        ["Event", change.id ? h("code", {}, `${change.source ?? ""} ${change.id}`) : null],
        ["Decided by", `the catalog of entry ${number(change.catalog)}${change.catalogOfThen ? "" : ", which was not in force at the time"}`],
      ])),
      card("Affected clients", holders.count ? [h("p", {}, `${plural(holders.clients, "client")} with ${plural(holders.widgets, "widget")}.`),
        counts("By kind", holders.kinds), counts("By platform", holders.platforms), counts("By channel", holders.channels)]
        : notice("No registration is affected by this change."))),
    card("Delivery", outcomesTable(app, outcomes, holders.count)),
    card("Rules", change.hint ? notice(change.hint.charAt(0).toUpperCase() + change.hint.slice(1) + ".") : null,
      change.rules.length ? table("Rules about this entity, and whether they matched", [
        { title: "Kind", head: true, cell: (rule) => [rule.kind, rule.target !== "timeline" ? h("div", { class: "quiet small" }, rule.target) : null] },
        { title: "Matched", cell: (rule) => rule.verdict === "hit"
          ? badge(rule.broad ? "yes, all clients" : "yes", rule.broad ? "warn" : "good")
          : [badge("no"), " ", say(rule.verdict), rule.attribute ? [": ", h("code", {}, rule.attribute)] : null] },
        { title: "Wants", explains: "The properties and operations that the rule lists", cell: (rule) => wants(rule, change) },
        { title: "By", cell: (rule) => (rule.keys ?? []).slice(0, 8).map((key) => h("div", { class: "small" }, key.length ? key.map((bound, place) => [place ? " and " : "", h("code", {}, `${bound.attribute} = ${bound.binding}`), bound.value !== undefined ? [" is ", h("code", {}, bound.value)] : bound.unset ? " where it is not set" : " with any value"]) : "everything of the kind")) },
        { title: "In the catalog", cell: (rule) => h("code", { class: "small" }, rule.place) },
      ], [...change.rules].sort((a, b) => (b.verdict === "hit") - (a.verdict === "hit"))) : null,
      change.rulesOfOtherEntities ? h("p", { class: "quiet small" }, `${plural(change.rulesOfOtherEntities, "rule")} about other entities could not match.`) : null),
  ];
}

/// The properties and operations that a rule lists; the change's own are marked.
function wants(rule, change) {
  const names = (list, own) => list.map((name, place) => [place ? ", " : "", own.includes(name) ? h("strong", {}, name) : name]);
  const parts = [
    rule.properties ? h("div", {}, names(rule.properties, change.properties ?? [])) : null,
    rule.operations ? h("div", {}, "on ", names(rule.operations, [change.operation])) : null,
  ].filter(Boolean);
  return parts.length ? parts : "everything";
}

function verdict(change) {
  if (change.unmatched) return "It matched no rule: nothing was reloaded.";
  const hit = change.rules.filter((rule) => rule.verdict === "hit").length;
  return `It matched ${plural(hit, "rule")} and affected ${plural(change.holders.clients, "client")}.${change.broad ? " An attribute was missing, so it affected all clients that the attribute would distinguish." : ""}`;
}

function counts(title, counts) {
  const entries = Object.entries(counts ?? {}).sort((a, b) => b[1] - a[1]);
  if (!entries.length) return null;
  return [h("h3", {}, title), facts(entries.slice(0, 12).map(([name, count]) => [say(name) || "others", number(count)]))];
}

function outcomesTable(app, outcomes, holders) {
  if (!holders) return notice("No client was affected.");
  const detail = {
    confirmed: () => "rebuilds reported by clients",
    sent: () => list(Object.entries(outcomes.sentBy ?? {}).map(([channel, count]) => `${number(count)} by ${say(channel)}`)),
    collapsed: () => list((outcomes.collapsedInto ?? []).slice(0, 5).map((into) => `${number(into.holders)} into ${number(into.sequence)}`)),
    withheld: () => (outcomes.withheldFor ?? []).map((held) => h("div", {}, `${number(held.holders)}: ${say(held.reason)}`, held.until ? [", due ", time(held.until)] : null)),
    unreachable: () => list(Object.entries(outcomes.unreachableFor ?? {}).map(([reason, count]) => `${number(count)}: ${say(reason)}`)),
  };
  const names = { confirmed: "Confirmed", sent: "Sent, not confirmed", collapsed: "Merged into a later change", withheld: "Withheld", unreachable: "Unreachable" };
  return table(`${plural(holders, "subscription")}, each counted once`, [
    { title: "Outcome", head: true, cell: (name) => names[name] },
    { title: "Subscriptions", number: true, cell: (name) => number(outcomes[name] ?? 0) },
    { title: "How", cell: (name) => outcomes[name] ? detail[name]() : null },
    { title: "Examples", cell: (name) => (outcomes.examples?.[name] ?? []).map((client, place) => [place ? ", " : "", h("a", { href: `#/clients/${encodeURIComponent(app)}/${encodeURIComponent(client)}` }, client)]) },
  ], Object.keys(names));
}

function list(parts) { return parts.join(", "); }
