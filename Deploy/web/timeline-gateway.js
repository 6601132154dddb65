// A client of the Timeline Gateway for web pages: one module, without dependencies or a build step.
//
//     import { TimelineClient } from "./timeline-gateway.js";
//     await new TimelineClient({
//       url: "https://gateway.example.com", app: "com.mygame", client: "browser-1",
//       token: async () => (await fetch("/token")).text(),      // of the app's own backend
//       registration: { platform: "web", widgets: [{ kind: "status", family: "systemSmall" }] },
//       rebuild: async (widgets) => { … },                      // fetch the data and show it
//     }).run(controller.signal);
//
// The wire reference says what a client has to do; the comments here say where it is done.

const HOUR = 3_600_000;
// Longer than a notification (16 KiB) and its field names.
const LINE_MAX = 32_768;

/** Parses an event stream piece by piece (WHATWG HTML, section 9.2.6). */
export class EventStreamParser {
  #rest = "";
  #block = {};
  #size = 0;
  #endedWithCR = false;

  /** Returns the blocks that end in `text`. One without `data`, a heartbeat, is a block here, too. */
  parse(text) {
    const blocks = [];
    if (!text) return [];
    // CRLF may be cut in two.
    if (this.#endedWithCR && text.startsWith("\n")) text = text.slice(1);
    this.#endedWithCR = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop();
    for (const line of lines) {
      this.#size += line.length;
      if (this.#size > LINE_MAX) break;
      if (line) {
        this.#field(line);
        continue;
      }
      if (Object.keys(this.#block).length) blocks.push(this.#block);
      [this.#block, this.#size] = [{}, 0];
    }
    if (this.#size + this.#rest.length > LINE_MAX) throw new RangeError("an event is too long");
    return blocks;
  }

  #field(line) {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    const block = this.#block;
    if (name === "data") block.data = block.data === undefined ? value : `${block.data}\n${value}`;
    else if (name === "event") block.event = value;
    else if (name === "id" && !value.includes("\0")) block.id = value;
    else if (name === "retry" && /^\d+$/.test(value)) block.retry = Number(value);
  }
}

/** The waits between attempts: random up to a bound that doubles, and never less than the server asks. */
export class Backoff {
  first = 1000;
  failures = 0;
  #random;

  constructor(random = Math.random) {
    this.#random = random;
  }

  /** Returns the milliseconds to wait after one more failure. */
  next(retryAfter = 0) {
    const bound = Math.min(60_000, this.first * 2 ** Math.min(this.failures++, 16));
    // Longer timers end at once.
    return Math.min(2 ** 31 - 1, retryAfter * 1000 + this.#random() * bound);
  }

  succeeded() {
    this.failures = 0;
  }
}

/** Why a notification was not believed. */
export class VerificationError extends Error {}

/** Why a request was refused: the status, and what `problem+json` says. */
export class GatewayError extends Error {
  constructor(status, problem, retryAfter) {
    super(`${status} ${problem.title ?? ""}. ${problem.detail ?? ""}`);
    this.status = status;
    this.code = (problem.type ?? "").replace("urn:timeline-gateway:problem:", "");
    this.retryAfter = retryAfter;
  }
}

const bytes = (text) => {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new VerificationError("not base64url");
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
};
const json = (text) => {
  let value;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes(text)));
  } catch {
    // Left undefined.
  }
  if (Object(value) !== value) throw new VerificationError("not a JSON object");
  return value;
};

/** Verifies notifications with the gateway's public keys. */
export class NotificationVerifier {
  #load;
  #keys = new Map();
  #loaded = -Infinity;
  #now;

  /** `load` returns the JWK set; it is called at most every 10 s. */
  constructor({ app, issuer, load, now = () => performance.now() }) {
    [this.app, this.issuer, this.#load, this.#now] = [app, issuer, load, now];
  }

  async #key(kid) {
    const age = this.#now() - this.#loaded;
    if (age > HOUR || (!this.#keys.has(kid) && age > 10_000)) {
      const set = await this.#load();
      this.#loaded = this.#now();
      this.#keys = new Map(set.keys.map((key) => [key.kid, key]));
    }
    const key = this.#keys.get(kid);
    if (!key) throw new VerificationError(`no key ${kid} is published`);
    return key;
  }

  /** Returns the claims of a notification. `now` is the server's time in seconds. */
  async verify(notification, now) {
    const parts = notification.split(".");
    if (notification.length > 16_384 || parts.length !== 3) throw new VerificationError("not a JWS");
    const header = json(parts[0]);
    const type = String(header.typ).toLowerCase().replace(/^application\//, "");
    if (type !== "timeline-reload+jwt" || "crit" in header) throw new VerificationError("another type");
    const { kty, crv, x, y } = await this.#key(header.kid);
    // The key decides the algorithm.
    const [alg, key, how] = crv === "Ed25519"
      ? [["EdDSA", "Ed25519"], { kty, crv, x }, { name: "Ed25519" }]
      : [["ES256"], { kty, crv, x, y }, { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" }];
    if (!alg.includes(header.alg)) throw new VerificationError("another algorithm");
    const imported = await crypto.subtle.importKey("jwk", key, how, false, ["verify"]);
    const signed = new TextEncoder().encode(`${parts[0]}.${parts[1]}`);
    if (!(await crypto.subtle.verify(how, imported, bytes(parts[2]), signed))) {
      throw new VerificationError("another signature");
    }
    const claims = json(parts[1]);
    if (![claims.aud].flat().includes(this.app)) throw new VerificationError("for another app");
    if (claims.iss !== this.issuer) throw new VerificationError(`of ${claims.iss}, not ${this.issuer}`);
    if (!(claims.exp + 5 > now)) throw new VerificationError("expired");
    return claims;
  }
}

/** Returns which of the widgets a notification concerns. */
export function concerned(claims, widgets) {
  const fits = (listed, value) => {
    if (listed !== null && typeof listed === "object") return true;
    const values = [value ?? []].flat().map(String);
    return listed === null ? value === undefined || value === null : values.includes(String(listed));
  };
  return widgets.filter(({ kind, parameters = {} }) =>
    claims.all || claims.relevance?.includes(kind) || claims.reload?.some((entry) => entry.kind === kind &&
      Object.entries(entry.parameters ?? {}).every(([name, listed]) => fits(listed, parameters[name]))));
}

// The gateway writes some numbers differently than JavaScript: it gets texts.
const text = (value) => (["number", "boolean"].includes(typeof value) ? String(value) : value);
const withTexts = ({ parameters, ...widget }) => ({ ...widget, parameters: parameters && Object.fromEntries(
  Object.entries(parameters).map(([key, value]) => [key, Array.isArray(value) ? value.map(text) : text(value)])) });

/** Registers a page's widgets, and has those rebuilt that became stale, until it is stopped. */
export class TimelineClient {
  #options;
  #stored;
  #verifier;
  #backoff = new Backoff();
  // Counts failed verifications apart: a connection that works must not reset their waits.
  #distrust = new Backoff();
  #token;
  #wasRefused = false;
  #serverAhead = 0;
  #lastByte = 0;
  /** The signal of the last run; that of the one now, which may still be ending; and its end. */
  #asked;
  #signal;
  #ended = Promise.resolve();
  #wake = () => {};

  /**
   * - `url`, `app`, `client`: of the gateway and of this installation (a random id that the page keeps). Only
   *   one page at a time may use an id: another one with it waits where the browser has Web Locks.
   * - `token({ again })`: returns a client token for each stream; `again` says that the last one was refused.
   * - `registration`: as the gateway takes it, with `widgets`; nothing else that becomes stale. Its `delivery` may
   *   have a `webpush` address beside `stream`, for the service worker in `push.js`. The cursor is the page's own.
   * - `rebuild(widgets, isFirst)`: fetches and shows what these widgets show. When it throws, the same
   *   widgets come again. `isFirst` says that all are built for the first time.
   * - `issuer`: the gateway's public URL, if `url` is not.
   * - `storage`: where the cursor is kept, `localStorage` for a page that keeps there what its widgets show,
   *   too. By default the cursor is not kept, and everything is built each time the page is opened.
   * - `onState(state, error)`: `registering`, `open`, `waiting` or `stopped`, for the page to show.
   */
  constructor(options) {
    const { url, app, client, registration, storage } = options;
    if (!Array.isArray(registration?.widgets)) throw new TypeError("registration.widgets must be a list");
    const other = ["activities", "activityStarts", "controls", "recommendations"].find((name) => registration[name]);
    if (other) throw new TypeError(`registration.${other} must be left out: only widgets are rebuilt`);
    this.#options = { issuer: url, silence: 45_000, onState() {}, ...options };
    this.path = `${url}/v1/apps/${app}/clients/${client}`;
    this.#verifier = new NotificationVerifier({
      app, issuer: this.#options.issuer,
      load: async () => (await this.#ask("GET", `${url}/.well-known/jwks.json`)).json(),
    });
    this.name = `timeline-gateway ${app} ${client}`;
    try {
      this.#stored = JSON.parse(storage?.getItem(this.name) ?? null) ?? {};
    } catch {
      this.#stored = {};
    }
  }

  get cursor() {
    return this.#stored.cursor;
  }

  #store(change) {
    Object.assign(this.#stored, change);
    try {
      this.#options.storage?.setItem(this.name, JSON.stringify(this.#stored));
    } catch {
      // Full, or forbidden: the next opening of the page builds everything.
    }
  }

  /** Runs until `signal` is aborted. Throws only what repeating would not change. */
  async run(signal = new AbortController().signal) {
    if (this.#asked?.aborted === false) throw new Error("the client runs already: abort that run first");
    this.#asked = signal;
    const locks = globalThis.navigator?.locks ?? { request: (name, options, run) => run() };
    // An aborted run first finishes what it rebuilds.
    const run = this.#ended.then(() => {
      this.#signal = signal;
      this.#options.onState("waiting");
      // Two pages with one client id would end each other's streams.
      return locks.request(this.name, { signal }, () => this.#follow(signal));
    }).catch((error) => {
      if (!signal.aborted) throw error;
    }).finally(() => {
      if (this.#asked === signal) this.#asked = undefined;
      this.#options.onState("stopped");
    });
    this.#ended = run.catch(() => {});
    return run;
  }

  async #follow(signal) {
    const hurry = () => this.#wake();
    const look = () => document.visibilityState === "visible" && hurry();
    globalThis.addEventListener?.("online", hurry);
    globalThis.document?.addEventListener("visibilitychange", look);
    try {
      while (!signal.aborted) {
        let retryAfter = 0, backoff = this.#backoff, failure;
        try {
          await this.#once(signal);
        } catch (error) {
          if (signal.aborted) break;
          failure = error;
          retryAfter = error?.retryAfter ?? 0;
          if (error instanceof VerificationError) backoff = this.#distrust;
          if (error instanceof GatewayError) this.#answer(error);
        }
        this.#options.onState("waiting", failure);
        await this.#wait(backoff.next(retryAfter), Math.max(retryAfter * 1000, this.#backoff.first), signal);
      }
    } finally {
      globalThis.removeEventListener?.("online", hurry);
      globalThis.document?.removeEventListener("visibilitychange", look);
    }
  }

  /** Decides what a refusal means; throws one that would come again. */
  #answer(error) {
    if (error.code === "unknown-client") this.#store({ cursor: undefined, registered: undefined, digest: undefined });
    else if (error.code === "registration-mismatch") this.#store({ registered: undefined });
    else if ([401, 403].includes(error.status)) this.#wasRefused = error.code !== "ticket-invalid";
    else if (error.status < 500 && ![404, 408, 425, 429].includes(error.status)) throw error;
  }

  /** Waits; less when the network is back or the page is looked at, but as long as the server asked. */
  #wait(milliseconds, atLeast, signal) {
    const began = performance.now();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#wake = () => {};
        resolve();
      };
      let timer = setTimeout(end, milliseconds);
      this.#wake = () => {
        this.#wake = () => {};
        const past = performance.now() - began;
        // Not all pages at once.
        const sooner = Math.max(0, atLeast - past) + Math.random() * Math.min(milliseconds, 5_000);
        if (sooner >= milliseconds - past) return;
        clearTimeout(timer);
        timer = setTimeout(end, sooner);
      };
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    });
  }

  /** Sends a request, and returns its response if it is a good one. A stream has its own end. */
  async #ask(method, url, { body, signal, headers = {}, asClient = false } = {}) {
    if (asClient) headers.Authorization = `Bearer ${this.#token}`;
    if (body) [headers["Content-Type"], body] = ["application/json", JSON.stringify(body)];
    const answer = await fetch(url, {
      method, headers, body, cache: "no-store", credentials: "omit", redirect: "error",
      signal: AbortSignal.any([this.#signal, signal ?? AbortSignal.timeout(30_000)]),
    });
    const date = Date.parse(answer.headers.get("Date") ?? "");
    if (date) this.#serverAhead = date - Date.now();
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    throw new GatewayError(answer.status, problem, Number(answer.headers.get("Retry-After")) || 0);
  }

  /** Registers if need be, opens one stream, reads it to its end, and rebuilds what becomes stale. */
  async #once(signal) {
    // A stream ends with its token: until then one is enough.
    this.#token = await this.#options.token({ again: this.#wasRefused });
    this.#wasRefused = false;
    await this.#register();
    const digest = { "Timeline-Registration": this.#stored.digest };
    const { ticket } = await (await this.#ask("POST", `${this.path}/tickets`, { headers: digest, asClient: true })).json();
    const place = new URLSearchParams({ ticket });
    if (this.cursor) place.set("since", this.cursor);
    const connection = new AbortController();
    const stop = () => connection.abort();
    // The widgets to rebuild; `position` is the last id that was read.
    const stale = new Set();
    let silence, position, building, isBuilding = false;
    const listen = () => {
      this.#lastByte = Date.now();
      clearTimeout(silence);
      silence = setTimeout(stop, this.#options.silence);
    };
    // Timers stand still in a page that is not shown.
    this.#wake = () => {
      if (Date.now() - this.#lastByte > this.#options.silence) stop();
    };
    try {
      listen();
      // Neither token nor field is in this request, so that the browser need not ask before it.
      const answer = await this.#ask("GET", `${this.path}/reloads?${place}`, {
        signal: connection.signal, headers: { Accept: "text/event-stream" },
      });
      this.#options.onState("open");
      const from = answer.headers.get("Timeline-Cursor");
      if (from !== null) this.#store({ cursor: from || undefined });
      position = this.cursor;
      const rebuilt = new Map();
      const build = async () => {
        isBuilding = true;
        do {
          // A widget that becomes stale from here on is rebuilt again.
          const [widgets, cursor, began] = [[...stale], position, performance.now()];
          stale.clear();
          if (widgets.length) await this.#options.rebuild(widgets, false);
          this.#backoff.succeeded();
          for (const widget of widgets) rebuilt.set(widget, performance.now() - began);
          if (cursor === this.cursor) continue;
          this.#store({ cursor });
          if (rebuilt.size) await this.#acknowledge(rebuilt);
        } while (!signal.aborted && (stale.size || position !== this.cursor));
        isBuilding = false;
      };
      const reader = answer.body.getReader();
      const [decoder, parser] = [new TextDecoder(), new EventStreamParser()];
      for (;;) {
        listen();
        const { done, value } = await reader.read();
        clearTimeout(silence);
        if (done) return;
        for (const block of parser.parse(decoder.decode(value, { stream: true }))) {
          for (const widget of await this.#read(block)) stale.add(widget);
          position = block.id ?? position;
          if (isBuilding || signal.aborted || (block.id ?? block.data) === undefined) continue;
          building = build();
          // After a failure nothing more is built here: the next stream begins at the stored cursor.
          building.catch(stop);
        }
      }
    } finally {
      clearTimeout(silence);
      stop();
      await building;
    }
  }

  async #register() {
    const { registration, rebuild, onState } = this.#options;
    const registered = JSON.stringify(registration);
    if (this.#stored.registered === registered && this.#stored.digest) return;
    onState("registering");
    const isKnown = this.#stored.digest && this.cursor && this.#stored.shown === registered;
    const body = { ...registration, widgets: registration.widgets.map(withTexts) };
    const answer = await (await this.#ask("PUT", this.path, { body, asClient: true })).json();
    // Only after everything is built may the registration's cursor be used.
    if (!isKnown) await rebuild(registration.widgets, true);
    this.#store({ registered, shown: registered, digest: answer.digest, cursor: isKnown ? this.cursor : answer.cursor });
  }

  /** Returns the widgets that a block of the stream makes stale. */
  async #read({ event, data, retry }) {
    if (retry !== undefined) this.#backoff.first = retry;
    if (event !== "reload" || data === undefined) return [];
    const claims = await this.#verifier.verify(data, (Date.now() + this.#serverAhead) / 1000);
    this.#distrust.succeeded();
    return concerned(claims, this.#options.registration.widgets);
  }

  async #acknowledge(widgets) {
    const rebuilt = [...widgets].map(([{ kind, parameters }, ms]) => withTexts({ kind, parameters, ms }));
    widgets.clear();
    try {
      const body = { cursor: this.cursor, rebuilt };
      const headers = { "Timeline-Registration": this.#stored.digest };
      await this.#ask("POST", `${this.path}/acks`, { body, headers, asClient: true });
    } catch (error) {
      // The next stream resumes from the cursor, which confirms as much; a refusal comes again there.
      if (error instanceof GatewayError && error.status === 409) throw error;
    }
  }
}
