// Push attempts and their results.

import { h, put, isInUse, table, notice, badge, field, select } from "./dom.js";
import { get, appPath } from "./gateway.js";
import { number, plural, time, say } from "./words.js";
import { actionButton, resendAction } from "./actions.js";
import { appChoice } from "./app.js";

const channels = ["widgets", "controls", "background", "webhook"];
const outcomes = ["sent", "retry", "failed", "dropped", "quarantined", "environment", "given-up", "stopped", "disabled"];

export const deliveriesPage = {
  title: "Deliveries",
  async show(main, query, context) {
    const apps = await context.apps();
    const choice = appChoice(apps, query.get("app"));
    if (!choice) { put(main, h("h1", {}, "Deliveries"), notice("No app has a catalog yet, so there are no pushes.")); return; }
    const client = h("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    client.value = query.get("client") ?? "";
    const channel = select([["", "all"], ...channels.map((one) => [one, say(one)])], query.get("channel") ?? "");
    const outcome = select([["", "all"], ...outcomes.map((one) => [one, one])], query.get("outcome") ?? "");
    const result = h("div"), events = h("div");
    const form = h("form", { class: "filters", role: "search" }, field("App", choice), field("Client id", client), field("Channel", channel), field("Outcome", outcome),
      h("button", { type: "submit", class: "main" }, "Show"));
    const apply = (event) => {
      event?.preventDefault();
      context.go("/deliveries", { app: choice.value, client: client.value.trim() || null, channel: channel.value || null, outcome: outcome.value || null });
    };
    form.addEventListener("submit", apply);
    for (const one of [choice, channel, outcome]) one.addEventListener("change", apply);
    put(main, h("h1", {}, "Deliveries"),
      h("p", { class: "lead" }, "APNs and webhook pushes with their outcomes, newest first. Deliveries by stream and poll are only counted; see Overview."),
      form, events, result);

    const app = choice.value, base = new URLSearchParams();
    for (const name of ["client", "channel", "outcome"]) if (query.get(name)) base.set(name, query.get(name));
    let rows = [], before;
    const draw = () => {
      if (!rows.length) {
        put(result, notice(base.size ? "No push matches." : "No pushes yet. Clients that stream or poll need none."));
        return;
      }
      put(result, h("section", { class: "card" }, table(`${plural(rows.length, "push", "pushes")} of ${app}${before === undefined ? "" : ", and more"}`, [
        { title: "When", head: true, cell: (push) => time(push.time) },
        { title: "Client", cell: (push) => h("a", { href: `#/clients/${encodeURIComponent(app)}/${encodeURIComponent(push.client)}` }, push.client) },
        { title: "Channel", cell: (push) => say(push.channel) },
        { title: "Outcome", cell: (push) => [badge(push.outcome, push.outcome === "sent" ? "good" : push.outcome === "retry" ? "warn" : "bad"), push.reason ? h("div", { class: "quiet small" }, push.reason) : null] },
        { title: "Duration", number: true, cell: (push) => `${number(push.ms)} ms` },
        { title: "Reference", cell: (push) => push.reference ? h("code", { class: "small" }, push.reference) : null },
        { title: "", cell: (push) => actionButton("Push again", () => resendAction(app, push.client, push.channel), { "aria-label": `Push to ${push.client} again by ${say(push.channel)}` }) },
      ], rows)), before === undefined ? null : h("div", { class: "buttons" }, h("button", { type: "button", on: { click: older } }, "Older pushes")));
    };
    const page = (last) => {
      const parameters = new URLSearchParams(base);
      parameters.set("limit", "50");
      if (last !== undefined) parameters.set("before", last);
      return get(`${appPath(app, "attempts")}?${parameters}`, context.signal);
    };
    const older = async () => {
      const answer = await page(before);
      rows = [...rows, ...answer.attempts];
      before = answer.before;
      draw();
    };
    const newest = async () => {
      const [answer, told] = await Promise.all([page(), get(appPath(app, "events"), context.signal)]);
      if (isInUse(result)) return;
      const last = rows[0]?.number ?? -1;
      const fresh = answer.attempts.filter((push) => push.number > last);
      if (!rows.length || fresh.length === answer.attempts.length) { rows = answer.attempts; before = answer.before; }
      else rows = [...fresh, ...rows];
      draw();
      if (!isInUse(events)) put(events, told.events.length ? h("section", { class: "card" }, table("Push problems that need an operator", [
        { title: "When", head: true, cell: (event) => time(event.time) },
        { title: "What", cell: (event) => [event.text, h("div", { class: "quiet small" }, event.event)] },
        { title: "Client", cell: (event) => event.client ? h("a", { href: `#/clients/${encodeURIComponent(app)}/${encodeURIComponent(event.client)}` }, event.client) : "–" },
        { title: "Times", number: true, cell: (event) => number(event.times) },
      ], told.events)) : null);
    };
    await newest();
    context.every(2000, newest);
  },
};
