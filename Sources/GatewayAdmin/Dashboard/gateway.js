// Communicates with the gateway that served this page, and with no other server.

const tokenName = "timeline-gateway-operator-token";

/// The operator's token: stored until the tab is closed, and never part of an address.
export const token = {
  get value() { return sessionStorage.getItem(tokenName) ?? ""; },
  set value(text) {
    if (text) sessionStorage.setItem(tokenName, text); else sessionStorage.removeItem(tokenName);
  },
};

/// A rejection by the gateway.
export class Refusal extends Error {
  constructor(status, problem) {
    const faults = (problem?.faults ?? []).map((fault) => [fault.place, fault.message].filter(Boolean).join(": "));
    super([problem?.title ?? (status ? `The gateway answered ${status}` : "The gateway does not respond"), problem?.detail, ...faults].filter(Boolean).join(". "));
    this.status = status;
    this.code = problem?.type?.split(/[/#:]/).pop();
  }
}

// Reading needs no token on loopback. Elsewhere the first response says so; then it is always sent.
let readsWithToken = false;

async function ask(method, path, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  const isReading = method === "GET";
  if (options.token) headers.Authorization = `Bearer ${options.token}`;
  else if (isReading && readsWithToken && token.value) headers.Authorization = `Bearer ${token.value}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method, headers, signal: options.signal, cache: "no-store", credentials: "omit", redirect: "error",
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0);
  }
  if (isReading && answer.status === 401 && !readsWithToken && !options.token) {
    readsWithToken = true;
    if (token.value) return ask(method, path, options);
  }
  return answer;
}

async function json(answer) {
  let value = null;
  try { value = await answer.json(); } catch { /* An empty answer has none. */ }
  if (!answer.ok) throw new Refusal(answer.status, value);
  return value;
}

export async function get(path, signal) {
  return json(await ask("GET", path, { signal }));
}

export async function act(action) {
  return json(await ask(action.method, action.path, { body: action.body, token: token.value }));
}

/// The path `/v1/apps/APP/...` with each part encoded.
export function appPath(app, ...parts) {
  return ["/v1/apps", ...[app, ...parts].map(encodeURIComponent)].join("/");
}

/// Receives the gateway's status every second, and reconnects after every break.
///
/// EventSource sends no Authorization field, so the stream is read here (WHATWG HTML, 9.2.6).
export function listen({ onEvent, onState }) {
  let pause = 1000;
  const run = async () => {
    for (;;) {
      try {
        const answer = await ask("GET", "/api/live", { headers: { Accept: "text/event-stream" } });
        if (!answer.ok) throw new Refusal(answer.status, await answer.json().catch(() => null));
        onState("open");
        pause = 1000;
        await read(answer.body.getReader(), onEvent);
        onState("broken");
      } catch (error) {
        onState(error.status === 401 || error.status === 403 ? "token" : "broken", error);
      }
      await new Promise((resume) => setTimeout(resume, pause));
      pause = Math.min(pause * 1.6, 15000);
    }
  };
  run();
}

async function read(reader, onEvent) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    // An event arrives every second; after ten seconds without one the connection counts as broken.
    const timeout = new Promise((_, reject) => setTimeout(() => reject(new Error("silent")), 10000));
    const { value, done } = await Promise.race([reader.read(), timeout]).catch((error) => {
      reader.cancel().catch(() => {});
      throw error;
    });
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      let name = "message", data = "";
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ")) data += line.slice(6);
      }
      rest = rest.slice(end + 2);
      if (data) onEvent(name, JSON.parse(data));
    }
  }
}
