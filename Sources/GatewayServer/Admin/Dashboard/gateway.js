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
export class Rejection extends Error {
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
      method, headers, signal: limited(options), cache: "no-store", credentials: "omit", redirect: "error",
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Rejection(0, error.name === "TimeoutError" ? { title: `The gateway did not answer within ${timeout / 1000} s` } : null);
  }
  if (isReading && answer.status === 401 && !readsWithToken && !options.token) {
    readsWithToken = true;
    if (token.value) return ask(method, path, options);
  }
  return answer;
}

/// The time that a request may take, in milliseconds.
const timeout = 10000;

/// Ends a request when its page is left, and, unless it is a stream, at the timeout.
function limited({ signal, isStream }) {
  return AbortSignal.any([signal, isStream ? null : AbortSignal.timeout(timeout)].filter(Boolean));
}

async function json(answer) {
  let value = null;
  try { value = await answer.json(); } catch { /* An empty answer has none. */ }
  if (!answer.ok) throw new Rejection(answer.status, value);
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

/// Receives the gateway's status every second while the page is open.
///
/// Without TLS a browser opens six connections to a host, for all tabs together: one tab reads the
/// stream then, and tells the others. With TLS the tabs share one connection of HTTP/2, and each
/// reads with its own token.
export function listen({ onEvent, onState }) {
  const left = new AbortController();
  // A page that is kept for the back button would keep its stream too. It is shown again only then.
  addEventListener("pagehide", () => {
    left.abort();
    addEventListener("pageshow", () => listen({ onEvent, onState }), { once: true });
  }, { once: true });
  if (location.protocol === "https:") { follow({ onEvent, onState }, left.signal); return; }
  const name = "timeline-gateway-live", channel = new BroadcastChannel(name);
  let isReader = false, last = Date.now();
  const hear = ({ event, state }) => {
    last = Date.now();
    if (event) { onState("open"); onEvent(...event); } else onState(state);
  };
  const tell = (message) => { hear(message); channel.postMessage(message); };
  channel.addEventListener("message", ({ data }) => hear(data));
  navigator.locks.request(name, { signal: left.signal }, () => {
    isReader = true;
    return follow({ onEvent: (...event) => tell({ event }), onState: (state) => tell({ state }) }, left.signal);
  }).catch(() => { /* The page was left before it was the reader. */ });
  const watch = setInterval(() => { if (!isReader && Date.now() - last > silence) onState("broken"); }, 1000);
  left.signal.addEventListener("abort", () => { clearInterval(watch); channel.close(); });
}

/// The time without an event after which the connection counts as broken, in milliseconds. An event
/// arrives every second.
const silence = 10000;

/// Reads the stream, and reconnects after every break, until it is ended.
///
/// EventSource sends no Authorization field, so the stream is read here (WHATWG HTML, 9.2.6).
async function follow({ onEvent, onState }, end) {
  let pause = 1000;
  while (!end.aborted) {
    try {
      const answer = await ask("GET", "/api/live", { headers: { Accept: "text/event-stream" }, isStream: true, signal: end });
      if (!answer.ok) throw new Rejection(answer.status, await answer.json().catch(() => null));
      onState("open");
      pause = 1000;
      await read(answer.body.getReader(), onEvent);
      onState("broken");
    } catch (error) {
      if (end.aborted) return;
      onState(error.status === 401 || error.status === 403 ? "token" : "broken");
    }
    await new Promise((resume) => setTimeout(resume, pause));
    pause = Math.min(pause * 1.6, 15000);
  }
}

async function read(reader, onEvent) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    let timer;
    const silent = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("silent")), silence); });
    const { value, done } = await Promise.race([reader.read(), silent]).catch((error) => {
      reader.cancel().catch(() => {});
      throw error;
    }).finally(() => clearTimeout(timer));
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
