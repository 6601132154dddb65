// The age of what users see, and the present problems.

import { h, put, hasSelection, isHeld, prose, card, notice, field, select } from "./dom.js";
import { get } from "./gateway.js";
import { chart } from "./chart.js";
import { number, compact, rate, seconds, bytes, share, plural, time, say } from "./words.js";

const channels = ["stream", "poll", "apns", "webhook", "webpush", "fcm"];
const spans = [["3600", "1 hour"], ["900", "15 minutes"], ["300", "5 minutes"]];

/// The present problems in words, with their remedies.
export function troubles(overview) {
  if (!overview.troubles.length) {
    return h("p", { class: "well" }, h("span", { class: "mark good", "aria-hidden": true }, "✓"), overview.log.head ? "No problems: changes are delivered on time." : "No problems.");
  }
  return h("ul", { class: "troubles" }, overview.troubles.map((trouble) =>
    h("li", { class: `trouble ${trouble.level}` },
      h("p", { class: "what" }, trouble.level === "critical" ? "Critical: " : "Warning: ", prose(trouble.what)),
      h("p", {}, prose(trouble.remedy), trouble.page ? [" ", h("a", { href: `#${trouble.page}` }, "Show")] : null))));
}

/// The first steps on a gateway without an app.
function firstSteps() {
  const step = (text, line) => h("li", {}, text, line ? h("pre", { tabindex: 0 }, line) : null);
  return h("section", { class: "card" }, h("h2", {}, "First steps"),
    h("p", {}, "No app has a catalog yet. A catalog says which widgets depend on which data."),
    h("ol", { class: "steps" },
      step("Issue a token for the app's backend, on this machine:", "timeline-gateway token --data DIR --app com.mygame --scope 'catalog:write changes:write clients:write operator'"),
      step("Apply a catalog with it; a sample is in Deploy/sample:", "timelinectl catalog apply catalog.yaml"),
      step("Register a client, as the app does at its first start, or let devices be simulated:", "timelinectl device --devices 10"),
      step("Post a change, and watch it here under Changes:", "timelinectl post --entity CharacterDetail --id panda --property avatar")),
    h("p", {}, "This page shows the charts once the first catalog is in force."));
}

export const overviewPage = {
  title: "Overview",
  async show(main, query, context) {
    const wrong = h("div"), tiles = h("div"), steps = h("div"), charts = h("div", { class: "cards" }), rest = h("div", { class: "cards three" });
    const chosen = { channel: query.get("channel") ?? "stream", span: query.get("span") ?? "3600" };
    const channelChoice = select(channels.map((channel) => [channel, say(channel)]), chosen.channel, {});
    const spanChoice = select(spans, chosen.span, {});
    const choices = h("form", { class: "filters" }, field("Charts of", spanChoice), field("Latencies by", channelChoice));
    put(main, h("h1", {}, "Overview"),
      h("p", { class: "lead" }, "Freshness: the time from a change until its clients are notified, and until they have rebuilt."),
      h("section", { class: "card", "aria-label": "Problems" }, h("h2", {}, "Problems"), wrong),
      steps, tiles, choices, charts, rest);

    let series = (await get("/api/overview", context.signal)).series;
    let overview = null;
    const drawCharts = () => {
      const at = series.at, span = Number(chosen.span) * 1000;
      const of = (lines, channel) => lines[channel] ?? { p50: at.map(() => null), p99: at.map(() => null) };
      const pair = (lines) => [
        { name: "p99", class: "one", values: lines.p99 },
        { name: "p50", class: "two", dash: "5 4", values: lines.p50 },
      ];
      const fresh = (title, lines) => chart({ title, at, span, log: true, say: seconds, lines: pair(lines) });
      const latency = (what, lines) => {
        const title = `From change to ${what} by ${say(chosen.channel)}`;
        return card(title, fresh(title, of(lines, chosen.channel)));
      };
      put(charts, latency("notification", series.sent), latency("rebuilt", series.confirmed),
        card("Throughput", chart({ title: "Throughput", at, span, say: (value) => value === null ? "–" : `${rate(value)}/s`, lines: [
          { name: "notifications to streams", class: "one", values: series.deliveries },
          { name: "changes", class: "two", dash: "5 4", values: series.changes }] })),
        card("Streams", chart({ title: "Streams", at, span, say: compact, isCount: true, lines: [
          { name: "open", class: "one", values: series.streams },
          { name: "lagging", class: "two", dash: "5 4", values: series.lagging }] })),
        overview?.standings ? card("Pushes", chart({ title: "Pushes", at, span, say: (value) => value === null ? "–" : `${rate(value)}/s`, lines: [
          { name: "sent", class: "one", values: series.pushesSent },
          { name: "not sent", class: "two", dash: "5 4", values: series.pushesFailed }] })) : null,
        overview?.standings ? card("Withheld by budgets", chart({ title: "Withheld by budgets", at, span, say: compact, isCount: true, lines: [
          { name: "withheld", class: "one", values: series.withheld }] })) : null,
        card("Commits", chart({ title: "Commit time", at, span, log: true, say: seconds, lines: pair(series.commit) })));
    };
    const choose = () => {
      chosen.channel = channelChoice.value;
      chosen.span = spanChoice.value;
      context.note({ channel: chosen.channel === "stream" ? null : chosen.channel, span: chosen.span === "3600" ? null : chosen.span });
      drawCharts();
    };
    channelChoice.addEventListener("change", choose);
    spanChoice.addEventListener("change", choose);

    let said = "", busy = false;
    context.onOverview(async (now) => {
      const isFirst = !overview;
      overview = now;
      const words = JSON.stringify(now.troubles);
      if (words !== said && !isHeld(wrong)) { said = words; put(wrong, troubles(now)); }
      const isEmpty = !now.log.head;
      if (isEmpty !== (steps.childElementCount > 0)) put(steps, isEmpty ? firstSteps() : null);
      for (const part of [tiles, choices, charts, rest]) part.hidden = isEmpty;
      if (!hasSelection(tiles)) put(tiles, headline(now));
      if (!hasSelection(rest)) put(rest, details(now));
      if (isFirst) drawCharts();
      const last = series.at[series.at.length - 1] ?? 0;
      if (busy || Date.parse(now.time) - last < 5500) return;
      busy = true;
      try {
        series = joined(series, (await get(`/api/overview?after=${last}`, context.signal)).series);
        if (!charts.querySelector(".cursor") && !isHeld(charts)) drawCharts();
      } catch { /* The state line says that the gateway is gone. */ } finally { busy = false; }
    });
  },
};

/// Appends new points to a history; points older than an hour are dropped. A line that only one of
/// the two has goes on as one without values: a gateway that was started again knows only what was
/// used since.
function joined(past, more) {
  const drop = Math.max(0, past.at.length + more.at.length - 720);
  const join = (old, late) => {
    if (Array.isArray(old ?? late)) return [...(old ?? past.at.map(() => null)), ...(late ?? more.at.map(() => null))].slice(drop);
    const names = new Set([...Object.keys(old ?? {}), ...Object.keys(late ?? {})]);
    return Object.fromEntries([...names].map((name) => [name, join(old?.[name], late?.[name])]));
  };
  return join(past, more);
}

function tile(name, value, note) {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value), note ? h("dd", { class: "note" }, note) : null);
}

function headline(now) {
  const stream = now.sent.stream ?? {}, rebuilt = now.confirmed.stream ?? now.confirmed.poll ?? {};
  const minutes = now.recentSeconds >= 60 ? `${Math.round(now.recentSeconds / 60)} min` : `${now.recentSeconds} s`;
  return h("dl", { class: "tiles" },
    tile(abbr("Delivered by stream, p99", "99 of 100 notifications came within this time of their change; p50: half of them"), seconds(stream.p99), `p50 ${seconds(stream.p50)}, last ${minutes}`),
    tile(abbr("Rebuilt, p99", "99 of 100 rebuilds were reported within this time of their change; p50: half of them"), seconds(rebuilt.p99), rebuilt.count ? `p50 ${seconds(rebuilt.p50)}` : "no reports"),
    tile("Changes", `${rate(now.rates.changes)}/s`, `${compact(now.recent.changes)} in ${minutes}`),
    tile("Notifications", `${rate(now.rates.deliveries)}/s`, `${compact(now.recent.deliveries)} in ${minutes}`),
    tile("Streams", compact(now.streams), now.lagging ? `${number(now.lagging)} lagging` : "none lagging"),
    tile("Clients", compact(now.clients), `${rate(now.rates.polls)} polls/s`));
}

function abbr(text, title) { return h("abbr", { title }, text); }

function row(name, value) { return [h("dt", {}, name), h("dd", {}, value)]; }

/// A number, and its share if there is a whole.
function part(count, all) { return all ? `${number(count)} (${share(count, all)})` : number(count); }

/// Who writes the log of a cluster.
function lead(cluster) {
  if (cluster.leads) return "this gateway leads";
  return cluster.leader ? `${cluster.leader} leads` : "nobody leads";
}

function details(now) {
  const log = now.log, recent = now.recent, standings = now.standings;
  const pushes = standings ? Object.values(standings).reduce((sum, count) => sum + count, 0) : 0;
  const behind = log.head - log.applied;
  return [
    card("Pushes and budgets", standings ? h("dl", { class: "facts" },
      row("Confirmed", `${number(standings.confirmed)} of ${number(pushes)}`),
      row("Delivered, not confirmed", number(standings.told)),
      row("Withheld by a budget", part(standings.withheld, pushes)),
      row("Waiting or in flight", number(standings.waiting + standings.underWay)),
      row("Unreachable", number(standings.unreachable)),
      row("Recently sent, failed", `${number(recent.pushesSent)}, ${number(recent.pushesFailed)}`))
      : notice("Pushes are off: no push service and no webhooks are configured.")),
    card("The log", h("dl", { class: "facts" },
      row("Entries", log.head > log.floor ? `${number(log.floor + 1)} to ${number(log.head)}` : "none"),
      row("Event loops", behind ? `${plural(behind, "entry", "entries")} behind` : "up to date"),
      row("Commit time", `p50 ${seconds(now.commit.p50)}, p99 ${seconds(now.commit.p99)}`),
      row("Queued writes", number(log.waitingWrites)),
      ...(now.cluster ? [row("Cluster", lead(now.cluster))] : []),
      row("On disk", `${bytes(log.databaseBytes)}, ${bytes(log.walBytes)} of write-ahead log`))),
    card("Change quality", h("dl", { class: "facts" },
      row("Matched no rule", part(recent.unmatched, recent.changes)),
      row("Reload all clients", part(recent.broad, recent.changes)),
      row("Failed rebuilds", number(recent.rebuildFailures)),
      row("Certificate expires", time(now.certificateEnds)))),
  ];
}
