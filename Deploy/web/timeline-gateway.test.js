// Tests of the module's parts, for `node --test`; Deploy/check-browser drives the whole in Chromium.
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import test from "node:test";
import {
  Backoff, concerned, EventStreamParser, NotificationVerifier, TimelineClient, VerificationError,
} from "./timeline-gateway.js";

// Browsers have it, and Node from 20 on; Debian 12 has Node 18.
globalThis.crypto ??= webcrypto;

const parse = (...pieces) => {
  const parser = new EventStreamParser();
  return pieces.flatMap((piece) => parser.parse(piece));
};

test("a stream means the same wherever it is cut, and however its lines end", () => {
  const text = ": hello\nretry: 2000\n\nevent: reload\ndata: a.b.c\nid: 1\n\nid: 2\n\ndata\ndata:x\ndata:  y\nother: z\n\n";
  const expected = [
    { retry: 2000 }, { event: "reload", data: "a.b.c", id: "1" }, { id: "2" }, { data: "\nx\n y" },
  ];
  for (const end of ["\n", "\r\n", "\r"]) {
    const stream = text.replaceAll("\n", end);
    assert.deepEqual(parse(...stream), expected);
    for (let cut = 0; cut <= stream.length; cut++) {
      assert.deepEqual(parse(stream.slice(0, cut), "", stream.slice(cut)), expected, `${JSON.stringify(end)} ${cut}`);
    }
  }
  assert.deepEqual(parse("data: a\r", "\n", "\n", "id: 1\n\n"), [{ data: "a" }, { id: "1" }]);
  assert.deepEqual(parse("id: a\0b\nretry: 1x\nretry: -1\ndata: kept\n\ndata: cut off"), [{ data: "kept" }]);
});

test("an event without an end is not kept", () => {
  for (const piece of ["x".repeat(1000), "data: x\n".repeat(100)]) {
    assert.throws(() => parse(...Array(100).fill(piece)), RangeError);
  }
});

test("waits double up to a minute, are random, and are added to what the server asks", () => {
  const longest = new Backoff(() => 1);
  assert.deepEqual([0, 0, 0, 0, 0, 0, 0, 0].map(() => longest.next()), [1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 6e4, 6e4]);
  longest.succeeded();
  longest.first = 2000;
  assert.equal(longest.next(5), 7000);
  assert.equal(longest.next(1e9), 2 ** 31 - 1);
  const shortest = new Backoff(() => 0);
  assert.equal(shortest.next(), 0);
  assert.equal(shortest.next(5), 5000);
});

// MARK: Signatures

const encode = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

async function signer(algorithm, kid) {
  const how = algorithm === "ES256"
    ? { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } : { name: "Ed25519" };
  const pair = await crypto.subtle.generateKey(how, true, ["sign", "verify"]);
  const jwk = { ...(await crypto.subtle.exportKey("jwk", pair.publicKey)), kid };
  const sign = async (claims, header = {}) => {
    const text = `${encode({ typ: "timeline-reload+jwt", alg: algorithm, kid, ...header })}.${encode(claims)}`;
    return `${text}.${Buffer.from(await crypto.subtle.sign(how, pair.privateKey, Buffer.from(text))).toString("base64url")}`;
  };
  return { jwk, sign };
}

const CLAIMS = { iss: "https://gateway.test", aud: "com.mygame", exp: 1000, all: true };

for (const algorithm of ["EdDSA", "ES256"]) {
  test(`${algorithm}: a notification is believed, and nothing else`, async () => {
    const [one, other] = [await signer(algorithm, "one"), await signer(algorithm, "one")];
    const verifier = new NotificationVerifier({
      app: "com.mygame", issuer: "https://gateway.test", load: async () => ({ keys: [one.jwk] }),
    });
    const good = await one.sign(CLAIMS);
    assert.deepEqual(await verifier.verify(good, 1004), CLAIMS);
    assert.deepEqual(await verifier.verify(await one.sign(CLAIMS, { typ: "application/Timeline-Reload+JWT" }), 0), CLAIMS);
    const [head, body, signature] = good.split(".");
    const bad = {
      "signed by another key": await other.sign(CLAIMS),
      altered: `${head}.${encode({ ...CLAIMS, exp: 2000 })}.${signature}`,
      "of another type": await one.sign(CLAIMS, { typ: "JWT" }),
      "with another algorithm": await one.sign(CLAIMS, { alg: algorithm === "EdDSA" ? "ES256" : "EdDSA" }),
      "without one": await one.sign(CLAIMS, { alg: "none" }),
      critical: await one.sign(CLAIMS, { crit: ["exp"] }),
      "for another app": await one.sign({ ...CLAIMS, aud: "com.other" }),
      "of another gateway": await one.sign({ ...CLAIMS, iss: "https://evil.test" }),
      "without an end": await one.sign({ ...CLAIMS, exp: undefined }),
      "too long": await one.sign({ ...CLAIMS, more: "x".repeat(16_384) }),
      "in two parts": `${head}.${body}`,
      padded: `${head}.${body}.${signature}=`,
    };
    for (const [what, notification] of Object.entries(bad)) {
      await assert.rejects(verifier.verify(notification, 0), VerificationError, what);
    }
    await assert.rejects(verifier.verify(good, 1005), VerificationError);
  });
}

test("a rotated key is fetched, at most every 10 s, and all of them every hour", async () => {
  const [one, two] = [await signer("EdDSA", "one"), await signer("EdDSA", "two")];
  let [now, loads, keys] = [0, 0, [one.jwk]];
  const verifier = new NotificationVerifier({
    app: "com.mygame", issuer: "https://gateway.test", now: () => now,
    load: async () => (loads++, { keys }),
  });
  const check = async (key) => verifier.verify(await key.sign(CLAIMS), 0);
  await check(one);
  await check(one);
  assert.equal(loads, 1);
  await assert.rejects(check(two), VerificationError);
  keys = [one.jwk, two.jwk];
  now = 10_000;
  await assert.rejects(check(two), VerificationError);
  now = 10_001;
  await check(two);
  await check(one);
  assert.equal(loads, 2);
  // A key that is no longer published is not believed for ever.
  keys = [two.jwk];
  now += 3_600_001;
  await assert.rejects(check(one), VerificationError);
  assert.equal(loads, 3);
});

// The table of the wire reference.
test("a notification concerns the widgets whose values fit", () => {
  const fits = (listed, ...values) => values.map((value) =>
    concerned({ reload: [{ kind: "k", parameters: { a: listed } }] }, [{ kind: "k", parameters: { a: value } }]).length > 0);
  assert.deepEqual(fits("1", "1", ["0", "1"], 1, "2", null, undefined), [true, true, true, false, false, false]);
  assert.deepEqual(fits(null, null, undefined, "1", []), [true, true, false, false]);
  assert.deepEqual(fits("é".normalize("NFC"), "é".normalize("NFD")), [false]);
  assert.deepEqual(fits(["x"], "1"), [true]);
  const widgets = [{ kind: "k" }, { kind: "other" }];
  assert.deepEqual(concerned({ all: true }, widgets), widgets);
  assert.deepEqual(concerned({ reload: [{ kind: "k" }] }, widgets), [widgets[0]]);
  assert.deepEqual(concerned({ relevance: ["other"] }, widgets), [widgets[1]]);
  assert.deepEqual(concerned({ recommendations: ["k"] }, widgets), []);
});

// MARK: The client, of a gateway that the test plays

const WIDGETS = ["a", "b"].map((name) => ({ kind: "k", family: "systemSmall", parameters: { name } }));
const OPTIONS = {
  url: "https://gateway.test", app: "com.mygame", client: "one", token: async () => "token",
  registration: { platform: "web", widgets: WIDGETS }, rebuild: async () => {},
};

/** Returns what was requested, and the streams that are open. */
async function play(t, answers = {}) {
  const key = await signer("EdDSA", "one");
  const [requests, streams] = [[], []];
  t.mock.method(globalThis, "fetch", async (url, { method, body, signal }) => {
    signal.throwIfAborted();
    const { pathname, searchParams } = new URL(url);
    const what = method === "PUT" ? "put" : pathname.split("/").at(-1);
    requests.push({ what, body: body && JSON.parse(body) });
    if (answers[what]) return answers[what]();
    if (what !== "reloads") {
      return Response.json({ cursor: "0", digest: "d", ticket: "t", keys: [key.jwk] });
    }
    let send;
    const content = new ReadableStream({ start: (controller) => (send = controller) });
    const stream = {
      since: searchParams.get("since"),
      send: (text) => send.enqueue(new TextEncoder().encode(text)),
      reload: async (id, ...names) => stream.send(`event: reload\ndata: ${await key.sign({
        ...CLAIMS, all: false, exp: 1e12,
        reload: names.map((name) => ({ kind: "k", parameters: { name } })) })}\nid: ${id}\n\n`),
    };
    streams.push(stream);
    signal.addEventListener("abort", () => {
      streams.splice(streams.indexOf(stream), 1);
      send.error(signal.reason);
    });
    return new Response(content, { headers: { "Timeline-Cursor": stream.since ?? "" } });
  });
  return { requests, streams, asked: (what) => requests.filter((one) => one.what === what).map((one) => one.body) };
}

async function until(condition) {
  const end = Date.now() + 20_000;
  while (!condition()) {
    assert.ok(Date.now() < end, `never: ${condition}`);
    await new Promise(setImmediate);
  }
}

/** Runs a client until the test ends. */
function start(t, options) {
  const [controller, states] = [new AbortController(), []];
  const client = new TimelineClient({ ...OPTIONS, onState: (state) => states.push(state), ...options });
  const run = client.run(controller.signal);
  t.after(async () => {
    controller.abort();
    await run;
  });
  return { client, states, run, controller };
}

test("the cursor is kept only where the page says so", (t) => {
  const storage = { getItem: () => '{"cursor":"9"}' };
  globalThis.localStorage = storage;
  t.after(() => delete globalThis.localStorage);
  assert.equal(new TimelineClient(OPTIONS).cursor, undefined);
  assert.equal(new TimelineClient({ ...OPTIONS, storage }).cursor, "9");
});

test("a registration of what is not rebuilt is refused", () => {
  const { widgets } = OPTIONS.registration;
  const wrong = [{}, { controls: widgets, widgets }, { activities: [{}], widgets }, { recommendations: [{}], widgets }];
  for (const registration of wrong) {
    assert.throws(() => new TimelineClient({ ...OPTIONS, registration }), TypeError);
  }
});

test("numbers are registered, compared and acknowledged as texts", async (t) => {
  const gateway = await play(t);
  const [rebuilt, widgets] = [[], [{ kind: "k", parameters: { name: [0.00001, true, "x"] } }]];
  start(t, { registration: { platform: "web", widgets }, rebuild: async (stale) => rebuilt.push(...stale) });
  await until(() => gateway.streams.length);
  const parameters = { name: ["0.00001", "true", "x"] };
  assert.deepEqual(gateway.asked("put")[0].widgets[0].parameters, parameters);
  await gateway.streams[0].reload("1", "0.00001");
  await until(() => gateway.asked("acks").length);
  assert.deepEqual(gateway.asked("acks")[0].rebuilt[0].parameters, parameters);
  assert.deepEqual(rebuilt, [widgets[0], widgets[0]]);
});

test("what becomes stale during a rebuild is rebuilt once, and stays owed until then", async (t) => {
  const gateway = await play(t);
  const [rebuilt, ends] = [[], []];
  const { client } = start(t, {
    rebuild: (stale, isFirst) => isFirst || new Promise((resolve) => {
      rebuilt.push(stale.map((one) => one.parameters.name).join());
      ends.push(resolve);
    }),
  });
  await until(() => gateway.streams.length);
  const [stream] = gateway.streams;
  for (let id = 1; id <= 40; id++) await stream.reload(id, "a");
  await stream.reload(41, "b");
  stream.send("id: 42\n\n");
  await until(() => rebuilt.length);
  // All of it is read.
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual([rebuilt, client.cursor], [["a"], "0"]);
  ends[0]();
  await until(() => rebuilt.length === 2);
  assert.deepEqual([rebuilt, client.cursor], [["a", "a,b"], "1"]);
  ends[1]();
  await until(() => gateway.asked("acks").length === 2);
  assert.deepEqual(gateway.asked("acks").map((one) => one.cursor), ["1", "42"]);
  assert.deepEqual([rebuilt.length, client.cursor], [2, "42"]);
});

test("what a rebuild failed at comes again from the cursor, after a wait", async (t) => {
  t.mock.method(Math, "random", () => 0.01);
  const gateway = await play(t);
  let fails = true;
  const { client, states } = start(t, {
    rebuild: async (stale, isFirst) => {
      if (!isFirst && fails) throw new Error("no data");
    },
  });
  await until(() => gateway.streams.length);
  const [stream] = gateway.streams;
  await stream.reload(1, "a");
  stream.send("id: 2\n\n");
  await until(() => gateway.streams.length && gateway.streams[0] !== stream);
  assert.deepEqual([gateway.streams[0].since, client.cursor], ["0", "0"]);
  assert.equal(states.at(-2), "waiting");
  fails = false;
  await gateway.streams[0].reload(2, "a");
  await until(() => client.cursor === "2");
});

test("one run at a time: the next one begins when an aborted one has ended", async (t) => {
  const gateway = await play(t);
  let end;
  const { client, controller, run } = start(t, {
    rebuild: (stale, isFirst) => isFirst || new Promise((resolve) => (end = resolve)),
  });
  await until(() => gateway.streams.length);
  await assert.rejects(client.run(), /already/);
  await gateway.streams[0].reload(1, "a");
  await until(() => end);
  controller.abort();
  const second = new AbortController();
  const next = client.run(second.signal);
  t.after(() => second.abort());
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(gateway.streams.length, 0);
  end();
  await run;
  await until(() => gateway.streams.length);
  assert.equal(gateway.streams[0].since, "1");
  second.abort();
  await next;
  assert.equal(gateway.streams.length, 0);
  await assert.doesNotReject(client.run(AbortSignal.abort()));
});

test("a stream is not opened after the end", async (t) => {
  let page;
  const gateway = await play(t, {
    tickets: () => {
      page.controller.abort();
      return Response.json({ ticket: "t" });
    },
  });
  page = start(t, {});
  await page.run;
  assert.equal(gateway.asked("tickets").length, 1);
  assert.equal(gateway.asked("reloads").length, 0);
});

test("a network that is back shortens a wait once, and never below what the server asked", async (t) => {
  let random = 1;
  t.mock.method(Math, "random", () => random);
  t.mock.method(performance, "now", () => 0);
  // Node 18 takes the list alone.
  t.mock.timers.enable(process.version.startsWith("v18.") ? ["setTimeout"] : { apis: ["setTimeout"] });
  let [online, retryAfter] = [undefined, 100];
  globalThis.addEventListener = (name, listener) => (online = listener);
  t.after(() => delete globalThis.addEventListener);
  const gateway = await play(t, {
    put: () => Response.json({}, { status: 503, headers: { "Retry-After": retryAfter } }),
  });
  const { states } = start(t);
  const attempts = () => states.filter((state) => state === "registering").length;
  const waits = async (number) => {
    await until(() => attempts() === number && states.at(-1) === "waiting");
    await new Promise(setImmediate);
  };
  await waits(1);
  random = 0.1;
  online();
  random = 0;
  online();
  t.mock.timers.tick(100_499);
  await waits(1);
  t.mock.timers.tick(1);
  [random, retryAfter] = [1, 0];
  for (let number = 2; number < 9; number++) {
    await waits(number);
    t.mock.timers.tick(60_000);
  }
  await waits(9);
  random = 0;
  online();
  t.mock.timers.tick(999);
  await waits(9);
  t.mock.timers.tick(1);
  await waits(10);
  assert.equal(gateway.asked("put").length, 10);
});

test("the service worker shows a notification for each push, and polls if the push cannot be believed", async () => {
  const gateway = "https://gateway.example.com";
  const one = await signer("EdDSA", "one");
  const now = Date.now() / 1000;
  const sign = (exp) => one.sign({ ...CLAIMS, iss: gateway, exp });
  const [good, expired] = [await sign(now + 60), await sign(now - 60)];
  const [events, shown, asked] = [{}, [], []];
  let isAway = false;
  const subscription = { toJSON: () => ({ endpoint: "https://push.test/2", expirationTime: null, keys: { auth: "a" } }) };
  globalThis.self = {
    location: { search: "?client=browser-1" }, addEventListener: (name, handler) => (events[name] = handler),
    registration: {
      showNotification: async (title, { body }) => shown.push(body),
      pushManager: { subscribe: async (options) => (asked.push(["subscribe", options]), subscription) },
    },
    clients: { matchAll: async () => [{ postMessage: (message) => asked.push(["page", message]) }] },
  };
  const answers = {
    "/token": "token", "/news": "Your turn", "/.well-known/jwks.json": { keys: [one.jwk] },
    "GET /reloads": { cursor: "polled", notifications: [good] }, "PATCH ": { applicationServerKey: "key" },
    "POST /acks": {},
  };
  const { fetch } = globalThis;
  globalThis.fetch = async (address, { method, headers, body } = {}) => {
    if (isAway) throw new TypeError("away");
    const own = address.split("/clients/browser-1")[1];
    const name = own === undefined ? address.replace(gateway, "") : `${method} ${own}`;
    if (own !== undefined) {
      assert.equal(headers.Authorization, "Bearer token");
      asked.push([name, body && JSON.parse(body)]);
    }
    const answer = answers[name];
    return new Response(typeof answer === "string" ? answer : JSON.stringify(answer), {
      headers: { Date: new Date().toUTCString() },
    });
  };
  const fire = async (name, event) => {
    let done;
    asked.length = shown.length = 0;
    events[name]({ ...event, waitUntil: (promise) => (done = promise) });
    await done;
    return [shown, asked];
  };
  const push = (notification) => fire("push", {
    data: { json: () => ({ cursor: "pushed", notifications: [notification] }) },
  });
  const ack = (cursor) => ["POST /acks", { cursor }];
  try {
    await import("./push.js");
    assert.deepEqual(await push(good), [["Your turn"], [ack("pushed")]]);
    const polled = [["Your turn"], [["GET /reloads", undefined], ack("polled")]];
    assert.deepEqual(await push(expired), polled);
    assert.deepEqual(await push("not.a.jws"), polled);
    assert.deepEqual(await fire("push", { data: null }), polled);
    const registered = [
      ["PATCH ", { delivery: [{ type: "stream" }, { type: "webpush", endpoint: "https://push.test/2", keys: { auth: "a" } }] }],
      ["page", "subscription"],
    ];
    const subscribed = ["subscribe", { userVisibleOnly: true, applicationServerKey: "key" }];
    assert.deepEqual(await fire("pushsubscriptionchange", {}), [[], [["PATCH ", {}], subscribed, ...registered]]);
    assert.deepEqual(
      await fire("pushsubscriptionchange", { newSubscription: subscription }), [[], [["PATCH ", {}], ...registered]]);
    isAway = true;
    assert.deepEqual(await push(expired), [["Something changed."], []]);
  } finally {
    globalThis.fetch = fetch;
    delete globalThis.self;
  }
});
