// Push attempts and their results.

import { h, put, isInUse, table, notice, badge, field, select } from "./dom.js";
import { get, appPath } from "./gateway.js";
import { number, plural, time, moment, say } from "./words.js";
import { actionButton, resendAction, resendAllAction } from "./actions.js";
import { appChoice } from "./app.js";

const channels = ["widgets", "controls", "background", "liveactivity", "webhook", "webpush", "fcm"];
const outcomes = ["sent", "retry", "failed", "dropped", "quarantined", "environment", "given-up", "stopped", "disabled", "content", "skipped"];

/// The last push to each client and channel, where it failed and there is an address still: pushing
/// again helps only those.
///
/// - sent: newer pushes that succeeded, where the list has none because it is filtered.
function failed(pushes, sent) {
  const known = new Set();
  const all = [...pushes, ...sent].sort((a, b) => b.number - a.number);
  return new Set(all.filter((push) => {
    const target = `${push.channel} ${push.client}`;
    if (known.has(target)) return false;
    known.add(target);
    return !["sent", "dropped", "skipped"].includes(push.outcome);
  }));
}

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
    const result = h("div"), events = h("div"), again = h("div", { class: "buttons" });
    const form = h("form", { class: "filters", role: "search" }, field("App", choice), field("Client id", client), field("Channel", channel), field("Outcome", outcome),
      h("button", { type: "submit", class: "main" }, "Show"));
    const apply = (event) => {
      event?.preventDefault();
      context.go("/deliveries", { app: choice.value, client: client.value.trim() || null, channel: channel.value || null, outcome: outcome.value || null });
    };
    form.addEventListener("submit", apply);
    for (const one of [choice, channel, outcome]) one.addEventListener("change", apply);
    put(main, h("h1", {}, "Deliveries"),
      h("p", { class: "lead" }, "APNs, FCM, Web Push and webhook pushes with their outcomes, newest first. Deliveries by stream and poll are only counted; see Overview."),
      form, events, again, result);

    const app = choice.value, base = new URLSearchParams();
    for (const name of ["client", "channel", "outcome"]) if (query.get(name)) base.set(name, query.get(name));
    let rows = [], sent = [], before;
    const draw = () => {
      if (!rows.length) {
        put(result, notice(base.size ? "No push matches." : "No pushes yet. Clients that stream or poll need none."));
        return;
      }
      const unsent = failed(rows, sent);
      put(again, unsent.size > 1 ? actionButton(`Push again to all ${number(unsent.size)} that failed`, () => resendAllAction(app, [...unsent])) : null);
      put(result, h("section", { class: "card" }, table(`${plural(rows.length, "push", "pushes")} of ${app}${before === undefined ? "" : ", and more"}`, [
        { title: "When", head: true, cell: (push) => moment(push.time) },
        { title: "Client", isPlain: true, cell: (push) => h("a", { href: `#/clients/${encodeURIComponent(app)}/${encodeURIComponent(push.client)}` }, push.client) },
        { title: "Channel", isPlain: true, cell: (push) => say(push.channel) },
        { title: "Told of", isPlain: true, explains: "The push told of everything stale, up to this change", cell: (push) => push.sequence ? h("a", { href: `#/changes/${encodeURIComponent(app)}/${push.sequence}` }, `change ${number(push.sequence)}`) : "–" },
        { title: "Pushed because", isPlain: true, cell: (push) => say(push.cause) },
        { title: "Outcome", isPlain: true, cell: (push) => [badge(push.outcome, push.outcome === "sent" ? "good" : ["retry", "content", "skipped"].includes(push.outcome) ? "warn" : "bad"), push.reason ? h("div", { class: "quiet small" }, push.reason) : null] },
        { title: "Took", number: true, isExtra: true, cell: (push) => `${number(push.ms)} ms` },
        { title: "Reference", isExtra: true, cell: (push) => push.reference ? h("code", { class: "small" }, push.reference) : null },
        { title: "", cell: (push) => !unsent.has(push) ? null : actionButton("Push again", () => resendAction(app, push.client, push.channel), { "aria-label": `Push to ${push.client} again by ${say(push.channel)}` }) },
      ], rows)), before === undefined ? null : h("div", { class: "buttons" }, h("button", { type: "button", on: { click: older } }, "Older pushes")));
    };
    const page = (last, values = {}) => {
      const parameters = new URLSearchParams({ ...Object.fromEntries(base), limit: 50, ...values });
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
      const isFiltered = base.has("outcome") && base.get("outcome") !== "sent";
      const [answer, told, successes] = await Promise.all([
        page(), get(appPath(app, "events"), context.signal),
        isFiltered ? page(undefined, { outcome: "sent", limit: 500 }) : { attempts: [] }]);
      if ([again, result].some(isInUse)) return;
      sent = successes.attempts;
      const last = rows[0]?.number ?? -1;
      const fresh = answer.attempts.filter((push) => push.number > last);
      if (!rows.length || fresh.length === answer.attempts.length) { rows = answer.attempts; before = answer.before; }
      else rows = [...fresh, ...rows];
      draw();
      if (!isInUse(events)) put(events, told.events.length ? h("section", { class: "card" }, table("Push problems that need an operator", [
        { title: "When", head: true, cell: (event) => moment(event.time) },
        { title: "What", cell: (event) => [event.text, h("div", { class: "quiet small" }, event.event)] },
        { title: "Client", cell: (event) => event.client ? h("a", { href: `#/clients/${encodeURIComponent(app)}/${encodeURIComponent(event.client)}` }, event.client) : "–" },
        { title: "Times", number: true, cell: (event) => number(event.times) },
      ], told.events)) : null);
    };
    await newest();
    context.every(2000, newest);
  },
};
