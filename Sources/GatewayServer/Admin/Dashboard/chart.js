// Draws lines over time, as SVG.

import { h, svg, put } from "./dom.js";
import { clock, seconds } from "./words.js";

const height = 210, left = 64, right = 12, top = 10, bottom = 26;
const hour = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
/// The shortest time between two points that interrupts a line, in milliseconds. While the gateway
/// runs, there is a point every five seconds.
const gapMin = 20e3;

/// A chart of several lines.
///
/// - lines: `{ name, class, dash, values }`, a number or null for each of `at` (milliseconds).
/// - say: a value as text.
/// - log: whether the scale is logarithmic, for values from milliseconds to minutes.
/// - isCount: whether values are whole numbers.
export function chart({ title, at, lines, say, log = false, isCount = false, span = 3600e3 }) {
  // Text keeps its size: a phone gets a narrower image, not a smaller one.
  const width = innerWidth < 600 ? 340 : 640;
  const end = at.length ? at[at.length - 1] : Date.now();
  const start = Math.max(end - span, Math.min(at[0] ?? end, end - 300e3));
  const known = lines.flatMap((line) => line.values.filter((value, place) => value !== null && at[place] >= start));
  const scale = log ? logarithmic(known) : linear(known, isCount ? 1 : 0);
  const x = (time) => left + ((time - start) / (end - start)) * (width - left - right);
  const y = (value) => top + (1 - scale.place(value)) * (height - top - bottom);

  const image = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary(title, lines, say, start, end), tabindex: 0 });
  for (const tick of scale.ticks) {
    image.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, say(tick)));
  }
  for (const time of wholeMinutes(start, end, width < 600 ? 3 : 6)) {
    image.append(svg("text", { x: x(time), y: height - 6, "text-anchor": x(time) < left + 16 ? "start" : x(time) > width - right - 16 ? "end" : "middle" }, hour.format(time)));
  }
  for (const [from, to] of gaps(at, start)) {
    image.append(svg("rect", { class: "gap", x: x(from), y: top, width: x(to) - x(from), height: height - top - bottom },
      svg("title", {}, `No data from ${clock(from)} to ${clock(to)}: the gateway did not run, or did not answer`)));
  }
  image.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  for (const line of lines) draw(image, line, at, start, x, y);
  if (!known.length) image.append(svg("text", { x: (left + width - right) / 2, y: height / 2 - 6, "text-anchor": "middle" }, `Nothing in the last ${seconds(span / 1000)}`));

  const legend = h("ul", { class: "legend" });
  const cursor = svg("g");
  image.append(cursor);
  const show = (place) => {
    put(legend, place === null ? null : h("li", { class: "quiet" }, clock(at[place])), lines.map((line) => h("li", {},
      svg("svg", { width: 22, height: 10, "aria-hidden": true }, svg("line", { class: line.class, x1: 0, x2: 22, y1: 5, y2: 5, "stroke-width": 2.5, "stroke-dasharray": line.dash })),
      line.name, h("b", {}, say(place === null ? last(line.values) : line.values[place])))));
    cursor.replaceChildren();
    if (place === null) return;
    cursor.append(svg("line", { class: "cursor", x1: x(at[place]), x2: x(at[place]), y1: top, y2: height - bottom }));
    for (const line of lines) {
      const value = line.values[place];
      if (value !== null) cursor.append(svg("circle", { class: `dot ${line.class}`, cx: x(at[place]), cy: y(value), r: 3.5 }));
    }
  };
  let chosen = null;
  const choose = (place) => { chosen = place; show(place); };
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const time = start + (((event.clientX - box.left) / box.width) * width - left) / (width - left - right) * (end - start);
    choose(nearest(at, time));
  });
  image.addEventListener("pointerleave", () => choose(null));
  image.addEventListener("blur", () => choose(null));
  image.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12 }[event.key];
    if (!step || !at.length) return;
    event.preventDefault();
    choose(Math.min(at.length - 1, Math.max(0, (chosen ?? at.length - 1) + step)));
  });
  show(null);
  return [image, legend];
}

function draw(image, line, at, start, x, y) {
  let path = "", alone = null;
  const dot = () => {
    if (alone) image.append(svg("circle", { class: `dot ${line.class}`, cx: alone[0], cy: alone[1], r: 2 }));
    alone = null;
  };
  let isDrawing = false;
  line.values.forEach((value, place) => {
    if (value === null || at[place] < start) { dot(); isDrawing = false; return; }
    if (at[place] - (at[place - 1] ?? -Infinity) > gapMin) { dot(); isDrawing = false; }
    const point = [x(at[place]).toFixed(1), y(value).toFixed(1)];
    path += `${isDrawing ? "L" : "M"}${point.join(" ")}`;
    alone = isDrawing ? null : point;
    isDrawing = true;
  });
  dot();
  if (path) image.append(svg("path", { class: `line ${line.class}`, d: path, "stroke-dasharray": line.dash }));
}

/// The periods without any point.
function gaps(at, start) {
  return at.flatMap((time, place) => place && time - at[place - 1] > gapMin && time > start ? [[Math.max(start, at[place - 1]), time]] : []);
}

/// Round times between two others, at most as many as there is room for.
function wholeMinutes(start, end, most) {
  const step = [1, 2, 5, 10, 15, 30, 60].map((minutes) => minutes * 60e3).find((one) => (end - start) / one <= most) ?? 60 * 60e3;
  const times = [];
  for (let time = Math.ceil(start / step) * step; time <= end; time += step) times.push(time);
  return times;
}

function last(values) {
  return values.length ? values[values.length - 1] : null;
}

function nearest(at, time) {
  let best = null;
  at.forEach((one, place) => { if (best === null || Math.abs(one - time) < Math.abs(at[best] - time)) best = place; });
  return best;
}

function summary(title, lines, say, start, end) {
  const said = lines.map((line) => {
    const known = line.values.filter((value) => value !== null);
    return known.length ? `${line.name}: now ${say(last(line.values))}, at most ${say(Math.max(...known))}` : `${line.name}: nothing`;
  });
  return `${title}, ${hour.format(start)} to ${hour.format(end)}. ${said.join("; ")}. Arrow keys show single moments.`;
}

function linear(values, stepMin) {
  const highest = Math.max(...values, stepMin * 4) || 1;
  const power = 10 ** Math.floor(Math.log10(highest / 3));
  const step = [1, 2, 5, 10].map((factor) => Math.max(stepMin, factor * power)).find((one) => highest / one <= 4) ?? highest;
  const end = Math.ceil(highest / step - 1e-9) * step;
  const ticks = [];
  for (let tick = 0; tick <= end + step / 2; tick += step) ticks.push(tick);
  return { ticks, place: (value) => value / end };
}

function logarithmic(values) {
  const positive = values.filter((value) => value > 0);
  // Seconds that people say: powers of ten below a minute, whole minutes, hours and days above.
  const steps = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 60, 600, 3600, 36e3, 864e2, 864e3, 864e4, 864e5];
  const low = steps.findLastIndex((step) => step <= Math.min(...positive, 0.01));
  const high = Math.max(low + 2, steps.findIndex((step) => step >= Math.max(...positive, 0.1)));
  const ticks = steps.slice(Math.max(low, 0), high + 1), least = Math.log10(ticks[0]), most = Math.log10(ticks[ticks.length - 1]);
  return { ticks, place: (value) => (Math.log10(Math.max(value, ticks[0])) - least) / (most - least) };
}
