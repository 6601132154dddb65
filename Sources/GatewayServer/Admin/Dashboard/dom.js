// Creates elements. Text is inserted as text only: nothing here parses markup.

const svgNamespace = "http://www.w3.org/2000/svg";

/// Creates an element. Properties: `class`, `on` (listeners by event), any attribute; null and
/// false are omitted. Children: nodes and texts, nested in arrays; null is omitted.
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/// Creates an element within an SVG image.
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/// Whether a person is about to use a control within an element. What is updated live is left as
/// it is for as long: a row that moves away under the pointer would be missed, and an element
/// replaced during a press is not clicked. After a touch, `:hover` still matches.
export function isInUse(element) {
  return element.contains(document.activeElement) || element.matches(":active") || hasSelection(element)
    || (pointer !== "touch" && element.matches(":hover"));
}

/// Whether the keyboard's focus is within an element, or a text that is selected, to be copied.
export function isHeld(element) {
  return element.querySelector(":focus-visible") !== null || hasSelection(element);
}

/// Whether text within an element is selected, to be copied.
export function hasSelection(element) {
  const selection = getSelection();
  return !selection.isCollapsed && (element.contains(selection.anchorNode) || element.contains(selection.focusNode));
}

let pointer = null;
for (const type of ["pointerdown", "pointermove"]) {
  addEventListener(type, (event) => { pointer = event.pointerType; }, { capture: true, passive: true });
}

/// Replaces the content of an element.
export function put(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/// A text of the gateway, in which names and commands stand between backticks.
export function prose(text) {
  return text.split("`").map((part, place) => place % 2 ? h("code", {}, part) : part);
}

/// A table. Columns: `title`, `explains` (the title's meaning), `cell` (returns a child for a row),
/// `number`, `head` for row headings; on a phone `isPlain` omits the title and `isExtra` the column.
export function table(caption, columns, rows, options = {}) {
  return h("div", { class: "scroll", tabindex: options.scrolls ? 0 : null, role: options.scrolls ? "region" : null, "aria-label": options.scrolls ? caption : null },
    h("table", { class: options.stack === false ? null : "stack" },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((column) =>
        h("th", { scope: "col", class: column.number ? "number" : null }, explained(column))))),
      h("tbody", {}, rows.map((row) => tableRow(columns, row, options)))));
}

/// The title of a column, with its explanation if it has one.
function explained(column) {
  return column.explains ? h("abbr", { title: column.explains }, column.title) : column.title;
}

/// One row of such a table.
export function tableRow(columns, row, options = {}) {
  return h("tr", { class: options.rowClass?.(row) }, columns.map((column) => column.head
    ? h("th", { scope: "row" }, column.cell(row))
    : h("td", { class: [column.number ? "number" : null, column.isPlain ? "plain" : null, column.isExtra ? "extra" : null].filter(Boolean).join(" ") || null, "data-label": column.title || null }, column.cell(row))));
}

/// A list of names and values.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) =>
    [h("dt", {}, name), h("dd", {}, value === null || value === undefined || value === "" ? "–" : value)]));
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title ? h("h2", {}, title) : null, children);
}

export function notice(text, isBad = false) {
  return h("p", { class: isBad ? "notice bad" : "notice", role: isBad ? "alert" : null }, prose(text));
}

export function badge(text, tone = "") {
  return h("span", { class: `badge ${tone}` }, text);
}

export function field(label, input) {
  return h("label", { class: "field" }, h("span", {}, label), input);
}

export function select(values, chosen, properties = {}) {
  return h("select", properties, values.map(([value, text]) =>
    h("option", { value, selected: value === chosen }, text)));
}
