// Clients, and for each of their widgets whether it is fresh or why it is not.

import { h, put, isInUse, card, table, facts, notice, badge, field } from "./dom.js";
import { Refusal, get, appPath } from "./gateway.js";
import { number, plural, time, say } from "./words.js";
import { actionButton, reloadAction, reloadClientAction, resendAction } from "./actions.js";
import { appChoice } from "./app.js";

export const clientsPage = {
  title: "Clients",
  async show(main, query, context) {
    const apps = await context.apps();
    const choice = appChoice(apps, query.get("app"));
    const result = h("div", { role: "region", "aria-label": "Clients found", "aria-live": "polite" });
    if (!choice) { put(main, h("h1", {}, "Clients"), notice("No app has a catalog yet, so there are no clients.")); return; }
    const client = h("input", { type: "search", placeholder: "device-1", autocomplete: "off", spellcheck: "false" });
    const attribute = h("input", { type: "search", placeholder: "account:42", autocomplete: "off", spellcheck: "false" });
    client.value = query.get("client") ?? "";
    attribute.value = query.get("attribute") ?? "";
    const form = h("form", { class: "filters", role: "search" }, field("App", choice), field("Client id", client), field("Attribute NAME:VALUE", attribute),
      h("button", { type: "submit", class: "main" }, "Find"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (client.value.trim()) context.go(`/clients/${encodeURIComponent(choice.value)}/${encodeURIComponent(client.value.trim())}`);
      else context.go("/clients", { app: choice.value, attribute: attribute.value.trim() || null });
    });
    choice.addEventListener("change", () => context.go("/clients", { app: choice.value }));
    put(main, h("h1", {}, "Clients"),
      h("p", { class: "lead" }, "A client is one installation of an app on one device. Find it by its id, or by an attribute such as its account."), form, result);

    const parameters = new URLSearchParams({ limit: "100" });
    if (query.get("attribute")) parameters.set("attribute", query.get("attribute"));
    let rows = [], after;
    const load = async () => {
      if (after !== undefined) parameters.set("after", after);
      const page = await get(`${appPath(choice.value, "clients")}?${parameters}`, context.signal);
      rows = [...rows, ...page.clients];
      after = page.after;
      draw();
    };
    const draw = () => {
      if (!rows.length) { put(result, notice(query.get("attribute") ? "No client has this attribute." : "No client is registered.")); return; }
      put(result, h("section", { class: "card" }, table(`${plural(rows.length, "client")} of ${choice.value}${after === undefined ? "" : ", and more"}`, [
        { title: "Client", head: true, cell: (one) => h("a", { href: `#/clients/${encodeURIComponent(choice.value)}/${encodeURIComponent(one.client)}` }, one.client) },
        { title: "Platform", cell: (one) => [one.platform, one.osVersion ? ` ${one.osVersion}` : null] },
        { title: "Attributes", cell: (one) => Object.entries(one.attributes ?? {}).slice(0, 6).map(([name, values]) => h("div", {}, h("code", {}, `${name}: ${[values].flat().join(", ")}`))) },
        { title: "Widgets", number: true, cell: (one) => number((one.widgets ?? []).reduce((sum, widget) => sum + (widget.count ?? 1), 0)) },
        { title: "Channels", cell: (one) => [...new Set((one.delivery ?? []).map((delivery) => say(delivery.type)))].join(", ") || "poll" },
      ], rows)), after === undefined ? null : h("div", { class: "buttons" }, h("button", { type: "button", on: { click: load } }, "More clients")));
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
        .catch((error) => { throw error.status === 404 ? new Refusal(404, { title: `No client of ${app} has the id ${client}`, detail: "Ids are compared exactly. Find the client by an attribute under All clients" }) : error; });
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
    if (delivery.type === "webhook") channels.push("webhook");
    if (delivery.type === "apns") channels.push(delivery.pushType);
  }
  for (const control of registered.controls ?? []) if (control.delivery) channels.push("controls");
  return [...new Set(channels)];
}

function standing(app, client, known, registered) {
  const items = [
    ...(known.widgets ?? []).map((one) => ({ ...one, sort: "widget" })),
    ...(known.recommendations ?? []).map((one) => ({ ...one, sort: "recommendations" })),
    ...(known.controls ?? []).map((one) => ({ ...one, sort: "control" })),
  ];
  const stale = items.filter((item) => item.fresh === false), attributes = Object.entries(registered.attributes ?? {});
  const kinds = [...new Set(items.filter((item) => !item.sleeps).map((item) => item.kind))];
  return [
    h("p", { class: "lead" }, stale.length ? `${number(stale.length)} of ${plural(items.length, "item")} ${stale.length === 1 ? "is" : "are"} stale.` : items.length ? "All items are fresh." : "Nothing is registered.",
      known.heardOf ? "" : " Not seen since the gateway started."),
    h("div", { class: "buttons" },
      items.length ? actionButton("Reload now", () => reloadClientAction(app, client)) : null,
      pushChannels(registered).map((channel) => actionButton(`Push again by ${say(channel)}`, () => resendAction(app, client, channel))),
      h("a", { href: `#/deliveries?app=${encodeURIComponent(app)}&client=${encodeURIComponent(client)}` }, "Deliveries")),
    h("p"),
    card("Registered items", items.length ? table("Stale first", [
      { title: "Kind", head: true, cell: (item) => [item.kind, h("div", { class: "quiet small" }, [item.family, item.sort === "widget" ? null : item.sort, item.count > 1 ? `${item.count} times` : null].filter(Boolean).join(", "))] },
      { title: "Configured with", cell: (item) => Object.entries(item.parameters ?? {}).map(([name, value]) => h("div", {}, h("code", {}, `${name}: ${value === null ? "not set" : [value].flat().join(", ")}`))) },
      { title: "State", cell: (item) => item.sleeps ? badge("inactive") : item.fresh ? badge("fresh", "good") : badge("stale", "bad") },
      { title: "Since and why", cell: (item) => item.fresh === false ? why(app, item) : item.sleeps ? "not declared by the catalog" : null },
      { title: "", cell: (item) => item.sleeps ? null : actionButton("Reload kind for all", () => reloadAction(app, item.kind), { "aria-label": `Reload ${item.kind} for all clients` }) },
    ], items.sort((a, b) => (a.fresh !== false) - (b.fresh !== false))) : notice("Nothing is registered.")),
    h("div", { class: "cards" },
      card("Client", facts([
        ["App", app], ["Platform", [registered.platform, registered.osVersion ? ` ${registered.osVersion}` : ""]],
        ["Attributes", attributes.length ? attributes.map(([name, values]) => h("div", {}, h("code", {}, `${name}: ${[values].flat().join(", ")}`))) : "none"],
        ["Confirmed up to", `entry ${number(known.confirmed)} of ${number(known.head)}`],
        ["Registered at", `entry ${number(known.since)}`],
      ])),
      card("Delivery", (known.streams ?? []).length || (known.addresses ?? []).length ? facts([
        ...(known.streams ?? []).map((stream) => ["Stream", [`delivered up to ${number(stream.watermark)}`, stream.lagging ? [" ", badge("not reading", "warn")] : null]]),
        ...(known.addresses ?? []).map((address) => [`${say(address.pushType ?? address.type)} for ${address.for}`, [
          `delivered up to ${number(address.delivered)}`, address.underWay ? ", push in flight" : "",
          address.failures ? `, failed ${plural(address.failures, "time")}` : "", address.retryAt ? [", retry ", time(address.retryAt)] : "",
          address.unusable ? [": ", badge(say(address.unusable), "bad")] : ""]]),
      ]) : notice("No stream and no address: it is notified when it polls."))),
  ];
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
