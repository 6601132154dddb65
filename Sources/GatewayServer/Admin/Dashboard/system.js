// The gateway's own status: keys, certificate, node, limits, log.

import { h, put, isInUse, card, table, facts, notice, badge } from "./dom.js";
import { get } from "./gateway.js";
import { number, seconds, bytes, time, share } from "./words.js";

export const systemPage = {
  title: "System",
  async show(main, query, context) {
    const body = h("div");
    put(main, h("h1", {}, "System"), h("p", { class: "lead" }, "Status and configuration of this gateway. Keys are listed without secrets."), body);
    const load = async () => {
      const system = await get("/api/system", context.signal);
      if (isInUse(body)) return;
      put(body, sections(system));
    };
    await load();
    context.every(10000, load);
  },
};

function sections(system) {
  const { node, log } = system;
  const config = Object.entries(system.configuration), limits = Object.entries(system.limits);
  return [
    h("div", { class: "cards" },
      card("This node", facts([
        ["Clients and backends", h("code", {}, node.listen)],
        ["Admin", [h("code", {}, node.admin), node.adminIsTLS ? " with TLS" : " plain HTTP, this machine only"]],
        ["Mode", node.development ? badge("development", "warn") : "configured"],
        ["Started", time(node.started)], ["Streams", number(node.streams)],
        ["Event loops", `${number(node.positions.length)}, at entries ${node.positions.map(number).join(", ")}`],
        ["CPU time", seconds(node.cpuSeconds)], ["Memory", bytes(node.residentBytes)],
        ["Open files", `${number(node.openFiles)} of ${number(node.openFilesMax)}`],
      ])),
      card("The log", facts([
        ["Entries", log.head > log.floor ? `${number(log.floor + 1)} to ${number(log.head)}` : "none"], ["Removed up to", number(log.floor)],
        ["Commits", number(log.commits)],
        ["Failed commits", log.failedCommits ? h("span", { class: "bad" }, number(log.failedCommits)) : "0"],
        ["Rejected writes", number(log.refusedJobs)], ["Slowest commit", seconds(log.slowestCommitSeconds)],
        ["Database", bytes(log.databaseBytes)], ["Write-ahead log", bytes(log.walBytes)],
      ]))),
    card("Certificate and keys", facts([
      ["Server certificate expires", time(system.certificateEnds)],
      ...system.pushCertificates.map(({ app, ends }) => [`APNs certificate of ${app} expires`, time(ends)]),
    ]), h("p"),
      table("Signing keys", [
        { title: "Key", head: true, cell: (key) => h("code", {}, key.kid) },
        { title: "Signs", cell: (key) => key.use }, { title: "Algorithm", cell: (key) => key.algorithm },
        { title: "State", cell: (key) => badge(key.state, key.state === "signing" ? "good" : "") },
        { title: "When", cell: (key) => key.since ? ["since ", time(key.since)] : [key.state === "published" ? "signs " : "until ", time(key.until)] },
      ], system.keys)),
    card("Version windows", system.windows.length ? table("Versions in memory per app; clients that resume from before the floor rebuild everything", [
      { title: "App", head: true, cell: (window) => window.app },
      { title: "Keys", number: true, cell: (window) => number(window.keys) },
      { title: "Limit", number: true, cell: (window) => number(window.keysMax) },
      { title: "Full", number: true, cell: (window) => share(window.keys, window.keysMax) },
      { title: "Floor", number: true, cell: (window) => number(window.floor) },
    ], system.windows) : notice("No app has a catalog yet.")),
    h("div", { class: "cards three" },
      card("Configuration", facts(config.map(([name, value]) => [h("code", {}, name), said(value)]))),
      card("Limits", facts(limits.map(([name, value]) => [h("code", {}, name), number(value)]))),
      card("Versions", facts(Object.entries(system.version).map(([name, value]) => [name, value])))),
  ];
}

function said(value) {
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  // Durations come as seconds.
  const duration = typeof value === "string" ? /^(\d+) s$/.exec(value) : null;
  if (duration) return seconds(Number(duration[1]));
  return typeof value === "number" ? number(value) : value;
}
