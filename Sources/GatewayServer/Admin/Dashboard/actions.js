// Operators' actions: shows what an action does as command lines, and asks for confirmation.

import { h, put, field } from "./dom.js";
import { act, get, token } from "./gateway.js";

/// A button that opens the dialog for an action.
///
/// An action: `{ title, explains, method, path, body, timelinectl, done(answer) }`.
export function actionButton(label, action, properties = {}) {
  return h("button", { type: "button", class: "small", ...properties, on: { click: () => confirm(action()) } }, label);
}

/// A button that opens the dialog for entering a token with read access.
export function tokenButton(onDone) {
  return h("button", { type: "button", class: "main", on: { click: () => askToken(onDone) } }, "Enter a token");
}

/// Text quoted for a shell, in single quotes where necessary.
function quoted(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/// The action as a curl command; the token stays in its variable.
export function curlLine(action) {
  const parts = ["curl", "-X", action.method, quoted(location.origin + action.path)];
  if (location.protocol === "https:") parts.push("--cacert", '"$TIMELINE_GATEWAY_CA"');
  parts.push("-H", '"Authorization: Bearer $TIMELINE_GATEWAY_TOKEN"');
  if (action.body !== undefined) {
    parts.push("-H", "'Content-Type: application/json'", "-d", quoted(JSON.stringify(action.body)));
  }
  return parts.join(" ");
}

/// A line to copy.
export function command(name, line) {
  const button = h("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return h("div", { class: "command" }, h("span", {}, name), h("pre", { tabindex: 0 }, line), button);
}

function open(...children) {
  const before = document.activeElement;
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, children);
  dialog.addEventListener("close", () => { dialog.remove(); before?.focus?.(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

function tokenField() {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  input.value = token.value;
  return input;
}

function confirm(action) {
  const input = tokenField();
  const line = h("div");
  const withURL = (url) => put(line, command("With timelinectl", `${action.timelinectl}${url ? ` --url ${quoted(url)}` : ""}`));
  withURL(null);
  get("/api/system").then((system) => withURL(system.configuration.publicURL)).catch(() => { /* Its variable will do. */ });
  const outcome = h("p", { class: "outcome", role: "status", "aria-live": "polite" });
  const go = h("button", { type: "submit", class: "main" }, action.verb ?? "Confirm");
  const close = h("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel");
  const form = h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, action.title),
    h("p", {}, action.explains),
    command("With curl", curlLine(action)),
    line,
    field("Operator token, kept until this tab is closed", input),
    h("div", { class: "buttons" }, go, close), outcome);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    token.value = input.value.trim();
    go.disabled = true;
    outcome.className = "outcome";
    put(outcome, "Sending…");
    try {
      const answer = action.all ? await actAll(action.all) : await act(action);
      outcome.classList.add("good");
      put(outcome, action.done(answer));
      close.textContent = "Close";
      go.hidden = true;
      close.focus();
    } catch (error) {
      outcome.classList.add("bad");
      put(outcome, error.message);
      go.disabled = false;
    }
  });
  const dialog = open(form);
  (input.value ? go : input).focus();
}

/// Performs actions one after the other; a rejected one is null, unless it is the first.
async function actAll(actions) {
  const answers = [await act(actions[0])];
  for (const action of actions.slice(1)) answers.push(await act(action).catch(() => null));
  return answers;
}

function askToken(onDone) {
  const input = tokenField();
  const form = h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, "Enter a token"),
    h("p", {}, "This port requires an operator token for all apps."),
    command("Issue a token", "timeline-gateway token --data DIR --app '*' --scope operator"),
    field("Operator token, kept until this tab is closed", input),
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "main" }, "Use token"),
      h("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token.value = input.value.trim();
    dialog.close();
    onDone();
  });
  const dialog = open(form);
  input.focus();
}

/// The action that reloads a kind, or everything of an app.
export function reloadAction(app, kind) {
  return {
    title: kind ? `Reload ${kind}` : `Reload everything of ${app}`,
    explains: kind
      ? `Every client of ${app} that shows a widget of this kind is notified to rebuild it.`
      : `Every client of ${app} is notified to rebuild everything.`,
    verb: "Reload", method: "POST", path: `/v1/apps/${encodeURIComponent(app)}/reloads`,
    body: kind ? { kind } : { all: true },
    timelinectl: `timelinectl reload --app ${quoted(app)} ${kind ? `--kind ${quoted(kind)}` : "--all"}`,
    done: (answer) => `Accepted as entry ${answer.sequence} of the log.`,
  };
}

/// The action that reloads everything that one client shows.
export function reloadClientAction(app, client) {
  return {
    title: `Reload ${client}`,
    explains: "The client is notified to rebuild everything: immediately by stream or push, otherwise when it reconnects.",
    verb: "Reload", method: "POST", path: `/v1/apps/${encodeURIComponent(app)}/reloads`,
    body: { client },
    timelinectl: `timelinectl reload --app ${quoted(app)} --client ${quoted(client)}`,
    done: (answer) => `Accepted as entry ${answer.sequence} of the log.`,
  };
}

/// The action that pushes again to all clients whose last push failed.
export function resendAllAction(app, pushes) {
  const actions = pushes.map((push) => resendAction(app, push.client, push.channel));
  return {
    ...actions[0], all: actions, title: `Push again to ${actions.length} clients`,
    explains: "Sends what is stale now, or else the last notification again, to each client whose last push failed, one after the other. Ignores budgets and schedules. The command lines are those of the first.",
    done: (answers) => `${answers.filter(Boolean).length} of ${answers.length} accepted. Their outcomes appear under Deliveries in a second.`,
  };
}

/// The action that pushes to a client again.
export function resendAction(app, client, channel) {
  return {
    title: `Push to ${client} again`,
    explains: "Sends what is stale for the client now, or else the last notification again, to each of its addresses on this channel. Ignores budgets and schedules.",
    verb: "Push again", method: "POST",
    path: `/v1/apps/${encodeURIComponent(app)}/clients/${encodeURIComponent(client)}/pushes`,
    body: { channel },
    timelinectl: `timelinectl resend --app ${quoted(app)} --client ${quoted(client)} --channel ${channel}`,
    done: (answer) => answer.pushes === 1 ? "1 push started. Its outcome appears under Deliveries in a second." : `${answer.pushes} pushes started. Their outcomes appear under Deliveries in a second.`,
  };
}
