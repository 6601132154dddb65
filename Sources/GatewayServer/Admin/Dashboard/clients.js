// Clients, and for each of their widgets whether it is fresh or why it is not.

import { h, put, isInUse, prose, card, table, facts, notice, badge, field, select } from "./dom.js";
import { Rejection, get, appPath } from "./gateway.js";
import { number, plural, time, moment, say } from "./words.js";
import { actionButton, reloadAction, reloadClientAction, resendAction } from "./actions.js";
import { appChoice } from "./app.js";

/// The orders of the clients that are loaded; the gateway lists them by id.
const orders = {
  id: ["by id", null],
  stale: ["stale first", (a, b) => rank(b) - rank(a)],
  seen: ["longest unseen first", (a, b) => seenAt(a) - seenAt(b)],
  recent: ["last seen first", (a, b) => seenAt(b) - seenAt(a)],
};
const rank = (one) => (one.stale ?? 0.5) + (one.dependOnNothing ? 1e6 : 0);
const seenAt = (one) => one.streams ? Infinity : one.lastSeen ? Date.parse(one.lastSeen) : 0;

/// The badges of a client's state.
function state(one) {
  return [
    one.stale ? badge(`${number(one.stale)} stale`, "bad") : one.stale === undefined ? badge("unknown") : badge("fresh", "good"),
    one.dependOnNothing ? [" ", h("span", { class: "badge warn", title: `No change reaches ${plural(one.dependOnNothing, "item")}: the client lacks an attribute` }, "lacks attributes")] : null,
  ];
}

export const clientsPage = {
  title: "Clients",
  async show(main, query, context) {
    const apps = await context.apps();
    const choice = appChoice(apps, query.get("app"));
    const result = h("div", { role: "region", "aria-label": "Clients found", "aria-live": "polite" });
    if (!choice) { put(main, h("h1", {}, "Clients"), notice("No app has a catalog yet, so there are no clients.")); return; }
    const client = h("input", { type: "search", placeholder: "device-", autocomplete: "off", spellcheck: "false" });
    const order = select(Object.entries(orders).map(([name, [words]]) => [name, words]), query.get("order") ?? "id");
    const attribute = h("input", { type: "search", placeholder: "account:42", autocomplete: "off", spellcheck: "false" });
    client.value = query.get("client") ?? "";
    attribute.value = query.get("attribute") ?? "";
    const form = h("form", { class: "filters", role: "search" }, field("App", choice), field("Client id, or its beginning", client), field("Attribute NAME:VALUE", attribute),
      field("Order", order), h("button", { type: "submit", class: "main" }, "Find"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      context.go("/clients", { app: choice.value, client: client.value.trim() || null, attribute: attribute.value.trim() || null, order: order.value === "id" ? null : order.value });
    });
    order.addEventListener("change", () => draw());
    choice.addEventListener("change", () => context.go("/clients", { app: choice.value }));
    put(main, h("h1", {}, "Clients"),
      h("p", { class: "lead" }, "A client is one installation of an app on one device. Find it by its id or the beginning of it, or by an attribute such as its account."), form, result);

    const parameters = new URLSearchParams({ limit: "100" });
    if (query.get("attribute")) parameters.set("attribute", query.get("attribute"));
    if (query.get("client")) parameters.set("prefix", query.get("client"));
    let rows = [], after;
    const load = async () => {
      if (after !== undefined) parameters.set("after", after);
      const page = await get(`${appPath(choice.value, "clients")}?${parameters}`, context.signal);
      rows = [...rows, ...page.clients];
      after = page.after;
      // A single client found is shown at once.
      if (query.get("client") && rows.length === 1) context.go(`/clients/${encodeURIComponent(choice.value)}/${encodeURIComponent(rows[0].client)}`);
      draw();
    };
    const draw = () => {
      if (!rows.length) { put(result, notice(query.get("client") ? `No client of ${choice.value} has an id that begins with “${query.get("client")}”${query.get("attribute") ? " and this attribute" : ""}.` : query.get("attribute") ? "No client has this attribute." : "No client is registered.")); return; }
      const compare = orders[order.value]?.[1], sorted = compare ? [...rows].sort(compare) : rows;
      put(result, h("section", { class: "card" }, table(`${plural(rows.length, "client")} of ${choice.value}${after === undefined ? "" : compare ? ", and more that are not in this order" : ", and more"}`, [
        { title: "Client", head: true, cell: (one) => h("a", { href: `#/clients/${encodeURIComponent(choice.value)}/${encodeURIComponent(one.client)}` }, one.client) },
        { title: "State", explains: "Stale items as far as the client has confirmed; unknown if it has confirmed nothing since the gateway started", isPlain: true, cell: state },
        { title: "Last seen", isPlain: true, cell: (one) => one.streams ? badge("stream open", "good") : one.lastSeen ? time(one.lastSeen) : "–" },
        { title: "Platform", isPlain: true, cell: (one) => [one.platform, one.osVersion ? ` ${one.osVersion}` : null] },
        { title: "Attributes", isPlain: true, cell: (one) => Object.entries(one.attributes ?? {}).slice(0, 6).map(([name, values]) => h("div", {}, h("code", {}, `${name}: ${[values].flat().join(", ")}`))) },
        { title: "Widgets", number: true, isExtra: true, cell: (one) => number((one.widgets ?? []).reduce((sum, widget) => sum + (widget.count ?? 1), 0)) },
        { title: "Channels", isPlain: true, cell: (one) => [...new Set((one.delivery ?? []).map((delivery) => say(delivery.type)))].join(", ") || "poll" },
      ], sorted)), after === undefined ? null : h("div", { class: "buttons" }, h("button", { type: "button", on: { click: load } }, "More clients")));
    };
    await load();
  },
};

export const clientPage = {
  title: "Client",
  async show(main, query, context, [app, client]) {
    context.title(client);
    const body = h("div");
    put(main, h("p", {}, h("a", { href: `#/clients?app=${encodeURIComponent(app)}` }, "All clients")), h("h1", {}, client), body);
    const load = async () => {
      const [known, registered] = await Promise.all([get(appPath(app, "clients", client, "explain"), context.signal), get(appPath(app, "clients", client), context.signal)])
        .catch((error) => { throw error.status === 404 ? new Rejection(404, { title: `No client of ${app} has the id ${client}`, detail: "Ids are compared exactly. Find the client by an attribute under All clients" }) : error; });
      if (isInUse(body)) return;
      put(body, standing(app, client, known, registered));
    };
    await load();
    context.every(5000, load);
  },
};

function pushChannels(registered) {
  const channels = [];
  for (const delivery of registered.delivery ?? []) {
    if (["webhook", "webpush", "fcm"].includes(delivery.type)) channels.push(delivery.type);
    if (delivery.type === "apns") channels.push(delivery.pushType);
  }
  for (const control of registered.controls ?? []) if (control.delivery) channels.push("controls");
  for (const activity of registered.activities ?? []) if (activity.delivery) channels.push("liveactivity");
  return [...new Set(channels)];
}

function standing(app, client, known, registered) {
  const items = [
    ...(known.widgets ?? []).map((one) => ({ ...one, sort: "widget" })),
    ...(known.recommendations ?? []).map((one) => ({ ...one, sort: "recommendations" })),
    ...(known.controls ?? []).map((one) => ({ ...one, sort: "control" })),
    ...(known.activities ?? []).map((one) => ({ ...one, kind: one.type, parameters: one.attributes, sort: "activity" })),
  ];
  const stale = items.filter((item) => item.fresh === false), deaf = items.filter((item) => item.dependsOnNothing), attributes = Object.entries(registered.attributes ?? {});
  const kinds = [...new Set(items.filter((item) => !item.sleeps).map((item) => item.kind))];
  return [
    h("p", { class: "lead" }, stale.length ? `${number(stale.length)} of ${plural(items.length, "item")} ${stale.length === 1 ? "is" : "are"} stale. ` : !items.length ? "Nothing is registered. " : deaf.length ? "" : "All items are fresh. ",
      deaf.length ? `No change reaches ${number(deaf.length)} of ${plural(items.length, "item")}: the client lacks ${[...new Set(deaf.flatMap((item) => item.lacks))].map((name) => `“${name}”`).join(", ")}. ` : "",
      (known.streams ?? []).length ? "A stream is open." : known.lastSeen ? ["Last seen ", time(known.lastSeen), known.heardOf ? "." : ", before the gateway started."] : "Not seen since the gateway started."),
    h("div", { class: "buttons" },
      items.length ? actionButton("Reload now", () => reloadClientAction(app, client)) : null,
      pushChannels(registered).map((channel) => actionButton(`Push again by ${say(channel)}`, () => resendAction(app, client, channel))),
      h("a", { href: `#/deliveries?app=${encodeURIComponent(app)}&client=${encodeURIComponent(client)}` }, "Deliveries")),
    known.warnings ? h("section", { class: "card" }, h("h2", {}, "Registration warnings"), h("ul", { class: "troubles" }, known.warnings.map((warning) => h("li", { class: "trouble" }, h("p", {}, h("code", {}, warning.place), ": ", prose(warning.message)))))) : null,
    card("Registered items", items.length ? table("Stale first", [
      { title: "Kind", head: true, cell: (item) => [item.kind, h("div", { class: "quiet small" }, [item.family, item.sort === "widget" ? null : item.sort, item.count > 1 ? `${item.count} times` : null].filter(Boolean).join(", "))] },
      { title: "Configured with", cell: (item) => Object.entries(item.parameters ?? {}).map(([name, value]) => h("div", {}, h("code", {}, `${name}: ${value === null ? "not set" : [value].flat().join(", ")}`))) },
      { title: "State", isPlain: true, cell: (item) => item.sleeps ? badge("inactive") : item.dependsOnNothing && item.fresh !== false ? badge("depends on nothing", "warn") : item.fresh ? badge("fresh", "good") : badge("stale", "bad") },
      { title: "Since and why", cell: (item) => [item.fresh === false ? why(app, item) : item.sleeps ? "not declared by the catalog" : null, lacks(item)] },
      { title: "", cell: (item) => item.sleeps ? null : actionButton("Reload kind for all", () => reloadAction(app, item.kind), { "aria-label": `Reload ${item.kind} for all clients` }) },
    ], items.sort((a, b) => itemOrder(a) - itemOrder(b))) : notice("Nothing is registered.")),
    h("div", { class: "cards" },
      card("Client", facts([
        ["App", app], ["Platform", [registered.platform, registered.osVersion ? ` ${registered.osVersion}` : ""]],
        ["Attributes", attributes.length ? attributes.map(([name, values]) => h("div", {}, h("code", {}, `${name}: ${[values].flat().join(", ")}`))) : "none"],
        ["Last seen", (known.streams ?? []).length ? "now: a stream is open" : moment(known.lastSeen)],
        ["Confirmed up to", `entry ${number(known.confirmed)} of ${number(known.head)}`],
        ["Registered at", `entry ${number(known.since)}`],
      ])),
      card("Delivery", (known.streams ?? []).length || (known.addresses ?? []).length || known.removedAddresses ? facts([
        ...(known.streams ?? []).map((stream) => ["Stream", [`delivered up to ${number(stream.watermark)}`, stream.lagging ? [" ", badge("not reading", "warn")] : null]]),
        ...(known.addresses ?? []).map((address) => [`${say(address.pushType ?? address.type)} for ${address.for}`, [
          `delivered up to ${number(address.delivered)}`, address.underWay ? ", push in flight" : "",
          address.cause ? `, last push: ${say(address.cause)}` : "", address.failures ? `, failed ${plural(address.failures, "time")}` : "", address.retryAt ? [", retry ", time(address.retryAt)] : "", address.problem ? `. ${address.problem}` : "",
          address.unusable ? [": ", badge(say(address.unusable), "bad")] : "", budget(address.budget)]]),
        ...(known.removedAddresses ?? []).map((removed) => [`${say(removed.channel)}, removed`, [
          badge(removed.reason ?? "rejected", "bad"), " ", time(removed.time), ". Nothing is pushed until the app registers a new token. ",
          h("a", { href: `#/deliveries?app=${encodeURIComponent(app)}&client=${encodeURIComponent(client)}&outcome=dropped` }, "The rejected push")]]),
        (known.streams ?? []).length || (known.addresses ?? []).length ? null : ["Notified", "when it polls"],
      ]) : notice("No stream and no address: it is notified when it polls."))),
  ];
}

/// Stale items come first, then those that no change reaches.
function itemOrder(item) {
  return item.fresh === false ? 0 : item.dependsOnNothing ? 1 : 2;
}

/// The pushes that are left, of how many, and when there are more.
function budget(budget) {
  if (!budget) return null;
  return h("div", { class: "quiet small" }, `Budget: ${number(budget.left)} of ${number(budget.burst)} pushes left`,
    budget.reserved ? `, ${budget.reserved === budget.left ? "all" : number(budget.reserved)} for urgent changes only` : "",
    budget.refillsAt ? ["; one more ", time(budget.refillsAt)] : "", `, at most ${number(budget.perDay)} a day`);
}

/// The attributes that an item's rules bind and the client lacks.
function lacks(item) {
  if (!item.lacks) return null;
  const names = item.lacks.map((name) => `“${name}”`).join(", ");
  return h("div", { class: "small warn" }, item.dependsOnNothing
    ? `All rules bind the client's ${names}, which it lacks: no change reaches this.`
    : `Rules that bind the client's ${names}, which it lacks, do not apply.`);
}

function why(app, item) {
  const stale = item.stale ?? {};
  const outcome = { confirmed: "confirmed", sent: `sent by ${say(item.channel)}, not confirmed yet`, collapsed: `merged into change ${number(item.into)}`, withheld: `withheld: ${say(item.reason)}`, unreachable: say(item.reason) }[item.outcome] ?? item.outcome;
  return [
    h("div", {}, stale.time ? time(stale.time) : "since an unknown time", stale.isEarliest ? "" : " or earlier", " by ",
      stale.cause === "reload" || stale.cause === "operator" ? "an operator's reload" : stale.cause === "catalog" ? "a new catalog"
        : h("a", { href: `#/changes/${encodeURIComponent(app)}/${stale.sequence}` }, `change ${number(stale.sequence)}`)),
    h("div", { class: "quiet small" }, outcome, item.until ? [", due ", time(item.until)] : null),
  ];
}
