// Formats numbers and times for people.

import { h } from "./dom.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function number(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

export function compact(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 10000 ? whole.format(value) : short.format(value);
}

export function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  return value < 100 ? three.format(value) : compact(value);
}

/// A duration in seconds.
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return `${three.format(value * 1e6)} µs`;
  if (value < 1) return `${three.format(value * 1000)} ms`;
  if (value < 60) return `${three.format(value)} s`;
  if (value < 3600) return two(Math.floor(value / 60), "min", Math.floor(value % 60), "s");
  if (value < 86400) return two(Math.floor(value / 3600), "h", Math.floor((value % 3600) / 60), "min");
  return `${whole.format(value / 86400)} d`;
}

function two(great, unit, small, smallUnit) {
  return small ? `${great} ${unit} ${small} ${smallUnit}` : `${great} ${unit}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (value >= 1024 && place < units.length - 1) { value /= 1024; place += 1; }
  return `${three.format(value)} ${units[place]}`;
}

/// A share of a sample, in whole per cent: more digits would be noise.
export function sampledShare(part, all) {
  const percent = all ? (part / all) * 100 : 0;
  return percent > 0 && percent < 1 ? "< 1 %" : `${whole.format(percent)} %`;
}

export function share(part, whole) {
  return whole ? `${three.format((part / whole) * 100)} %` : "–";
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const clockTime = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/// The time of day, by 24 hours as in the command line's output.
export function clock(time) {
  return clockTime.format(typeof time === "string" ? Date.parse(time) : time);
}

function relative(milliseconds) {
  const ahead = milliseconds > 0;
  const size = Math.abs(milliseconds) / 1000;
  if (size < 2) return ahead ? "in a moment" : "just now";
  const said = size < 60 ? `${Math.round(size)} s`
    : size < 3600 ? `${Math.round(size / 60)} min`
    : size < 2 * 86400 ? `${Math.round(size / 3600)} h`
    : `${Math.round(size / 86400)} d`;
  return ahead ? `in ${said}` : `${said} ago`;
}

const dayAndTime = new Intl.DateTimeFormat([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/// A time as text that stays: the time of day, with the date unless it is today; then how long ago.
export function moment(text) {
  if (!text) return "–";
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  return [(isToday ? clockTime : dayAndTime).format(date), h("div", { class: "quiet small" }, time(text))];
}

/// A time as text that is kept up to date; its title is the exact time.
export function time(text) {
  if (!text) return "–";
  const element = h("time", { datetime: text, title: `${new Date(text).toLocaleString()} (${text})` });
  refresh(element);
  return element;
}

function refresh(element) {
  const said = relative(Date.parse(element.dateTime) - Date.now());
  if (element.textContent !== said) element.textContent = said;
}

setInterval(() => {
  for (const element of document.querySelectorAll("time")) refresh(element);
}, 1000);

/// The terms of the API, for people.
export const words = {
  stream: "stream", poll: "poll", apns: "APNs", webhook: "webhook", webpush: "Web Push", fcm: "FCM",
  widgets: "APNs widgets", controls: "APNs controls", background: "APNs background", liveactivity: "APNs Live Activities",
  hit: "matched",
  "other-entity": "about another entity",
  "operation-not-listed": "not for this operation",
  "properties-not-listed": "none of its properties changed",
  "literal-differs": "an attribute has another value",
  "awaits-client": "waits for the client to reconnect",
  "unknown-since-start": "has not said what it applied since the gateway started",
  refused: "its push was rejected permanently",
  "dead-address": "its tokens are dead or quarantined",
  "disabled-webhook": "its webhook is disabled",
  ended: "the activity has ended",
  collapse: "waits for the end of its collapse window",
  "slow-reader": "its stream is not reading",
  "under-way": "a push is in flight",
  queue: "too many pushes in flight",
  grace: "waits for delivery by stream first",
  spread: "spread over time, because it affects many devices",
  retry: "the address failed; will be retried",
  budget: "the device's budget is used up",
  interval: "the kind's minimum interval has not passed",
  stopped: "the push service rejects the credential or topic",
  content: "its source of content fails; will be asked again",
  "no-stream": "no stream was open",
  "not-acknowledged": "not acknowledged on the stream in time",
  "stream-ended": "the stream ended before it was acknowledged",
  repeat: "no contact after the last push",
  manual: "requested by a person",
  forgotten: "the change is no longer in the log, so everything counts as stale",
};

export function say(word) {
  return words[word] ?? word ?? "–";
}
