// Tests of the module's parts, for `node --test`; Deploy/check-browser drives the whole in Chromium.
import assert from "node:assert/strict";
import test from "node:test";
import { Backoff, concerned, EventStreamParser, NotificationVerifier, VerificationError } from "./timeline-gateway.js";

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
