/**
 * Posts changes to a Timeline Gateway, signs tokens for it, and verifies what it sends.
 *
 * Copy this file into your backend. It needs no package, only what Node 20 has built in (`fetch`,
 * Web Crypto, `Buffer`). Node runs it as it is from 22.18 on; before, compile it.
 *
 *     const url = "https://gateway.example", issuer = "https://accounts.example";
 *     const gateway = new Gateway(url, "com.mygame", () => process.env.BACKEND!);
 *     await gateway.post([event("/game", { entity: "CharacterDetail", id: "panda" })]);
 *
 *     const signer = await Signer.make(pem, "2026-11", issuer, url);
 *     const attributes = { account: "42" };
 *     const token = await signer.token("com.mygame", "my-iphone", { attributes });
 *
 *     const notifications = new NotificationVerifier(url, "com.mygame");
 *     const { id, document } = await verifyWebhook(keys, "com.mygame", request.headers, body);
 *     for (const jws of document.notifications) await notifications.verify(jws);
 *
 * No secret is compared, so nothing has to take constant time.
 */

/** A change of data; the guide for backends explains the members. */
export interface Change {
  entity: string;
  id?: string;
  operation?: "insert" | "update" | "delete";
  properties?: string[];
  attributes?: Record<string, string | string[]>;
  urgency?: "very-low" | "low" | "normal" | "high";
}

/** A CloudEvent with a change. */
export type Event = { specversion: "1.0"; type: string; source: string; id: string; data: Change };

const counts = ["accepted", "duplicates", "unmatched", "broad", "sequence"] as const;

/** How many events were accepted, and the highest sequence. */
export type Accepted = Record<(typeof counts)[number], number>;

// Limits of the gateway with its default configuration, and of this file.
const postEvents = 1_000, postBytes = 8 << 20, notificationBytes = 16_384;
const answerBytes = 1 << 20, webhookSignatures = 8, attemptSeconds = 15, backoffSeconds = 60;
const keysAttemptSeconds = 10, keysPauseSeconds = 10, expiryTolerance = 5, webhookTolerance = 300;
const keysSeconds = 270; // A gateway publishes a key 300 s before it signs with it.

declare const Buffer: any; // Node's. Compilers may lack types, or have old ones: some are `any`.

/** The gateway was not reached (`status` 0), or refused a request. */
export class GatewayError extends Error {
  readonly status: number;
  readonly code: string; // Names the problem, such as `event-id-reused`.
  readonly faults: { place: string; message: string }[];
  readonly retryAfter: number; // In seconds.

  constructor(url: string, status: number, text: string, retryAfter = 0, first = 0) {
    const problem = parsed(Buffer.from(text)) ?? { detail: text.slice(0, 200) };
    const code = String(problem.type ?? "").split(":").pop() ?? "";
    // The gateway counts from the first event of a batch, and a caller from that of the post.
    const place = (text: string) =>
      text.replace(/^\[(\d{1,9})\]/, (_, index) => `[${first + Number(index)}]`);
    const faults = (Array.isArray(problem.faults) ? problem.faults : [])
      .map((one) => ({ ...one, place: place(String(one?.place)) }));
    const said = faults.slice(0, 5).map((one) => `${one.place}: ${one.message}`);
    super(`${url}: ` + [
      status ? `${status} ${code}`.trim() : "no answer",
      ...(said.length ? said : [String(problem.detail ?? problem.title ?? "")]),
    ].filter(Boolean).join("; "));
    [this.name, this.status, this.code] = ["GatewayError", status, code];
    [this.faults, this.retryAfter] = [faults, retryAfter];
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return [0, 408, 425, 429].includes(this.status) || this.status >= 500;
  }
}

/** Something is not valid; `field` names what, such as `exp`. */
export class Rejection extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(`${field}: ${message}`);
    [this.name, this.field] = ["Rejection", field];
  }
}

/** Posts the changes of one app. To trust the gateway's own authority, set NODE_EXTRA_CA_CERTS. */
export class Gateway {
  readonly #url: string;
  readonly #token: () => string | Promise<string>;

  /** `token` returns a token with the scope `changes:write`, and is called before each attempt. */
  constructor(url: string, app: string, token: () => string | Promise<string>) {
    this.#url = `${secure(url)}/v1/apps/${checked("app", app)}/changes`;
    this.#token = token;
  }

  /**
   * Posts events that `event` made, after the commit of the data; returns the answers' sums.
   *
   * An attempt that was lost, or answered 408, 425, 429 or 5xx, is repeated with the same ids after
   * `Retry-After` and a random time that grows, while it can begin within `patience` seconds from
   * the first attempt; with 0, never. Throws GatewayError; some of many events are accepted then.
   * Post all of them again: those count as duplicates.
   */
  async post(events: Event[], patience = 60): Promise<Accepted> {
    const total = Object.fromEntries(counts.map((name) => [name, 0])) as Accepted;
    for (const { first, body } of batches(events)) {
      const answer = await this.#post(body, first, patience);
      const sequence = Math.max(total.sequence, answer.sequence);
      for (const name of counts) total[name] += answer[name];
      total.sequence = sequence;
    }
    return total;
  }

  async #post(body: string, first: number, patience: number): Promise<Accepted> {
    const end = performance.now() + patience * 1_000;
    for (let failures = 0; ; failures++) {
      try {
        return await this.#attempt(body, first);
      } catch (error) {
        if (!(error instanceof GatewayError && error.isTemporary)) throw error;
        const random = Math.random() * Math.min(backoffSeconds, 2 ** failures);
        const wait = 1_000 * (error.retryAfter + random);
        if (performance.now() + wait > end) throw error;
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  async #attempt(body: string, first: number): Promise<Accepted> {
    const token = String(await this.#token() ?? "").trim();
    if (!/^[!-~]+$/.test(token)) throw new Rejection("token", "empty, or not visible ASCII");
    const type = "application/cloudevents-batch+json";
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": type };
    const init = { method: "POST", body, headers };
    const { status, data } = await send(this.#url, attemptSeconds, init, first);
    const answer = parsed(data);
    if (!counts.every((name) => Number.isInteger(answer?.[name])))
      throw new GatewayError(this.#url, status, "not a gateway's answer; check the URL");
    return Object.fromEntries(counts.map((name) => [name, answer![name]])) as Accepted;
  }
}

/**
 * Returns an event with a change, such as `{ entity: "CharacterDetail", id: "panda" }`.
 *
 * `source` says who posts, such as `/game`. The id makes repeating harmless: make the event once,
 * and post that until it is accepted. With an outbox, the id is the row's.
 */
export function event(source: string, change: Change, id: string = crypto.randomUUID()): Event {
  return { specversion: "1.0", type: "change", source, id, data: change };
}

/** Returns requests that have all events, in order: the number of the first, and the body. */
function batches(events: Event[]): { first: number; body: string }[] {
  const made: { first: number; texts: string[] }[] = [];
  let size = 0;
  events.forEach((one, number) => {
    const text = JSON.stringify(one), bytes = Buffer.byteLength(text) + 1;
    if (!number || made[made.length - 1].texts.length === postEvents || size + bytes > postBytes) {
      made.push({ first: number, texts: [] });
      size = 2;
    }
    made[made.length - 1].texts.push(text);
    size += bytes;
  });
  return made.map(({ first, texts }) => ({ first, body: `[${texts.join(",")}]` }));
}

/** Signs tokens as an issuer that the gateway's `issuers` names. */
export class Signer {
  readonly #key: CryptoKey;
  readonly #head: object;
  readonly #claims: object;

  private constructor(key: CryptoKey, kid: string, iss: string, aud: string) {
    [this.#key, this.#head, this.#claims] = [key, { alg: "EdDSA", typ: "JWT", kid }, { iss, aud }];
  }

  /**
   * Makes a signer. `pem` is an Ed25519 private key (PKCS #8), `kid` its name in the issuer's key
   * set, `issuer` the `iss` of the configuration, and `audience` the gateway's `publicURL`.
   */
  static async make(pem: string, kid: string, issuer: string, audience: string): Promise<Signer> {
    const text = /-----BEGIN PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END PRIVATE/.exec(pem)?.[1];
    return crypto.subtle
      .importKey("pkcs8", Buffer.from(text ?? "", "base64"), "Ed25519", false, ["sign"])
      .then((key) => new Signer(key, kid, issuer, audience), () => {
        throw new Rejection("key", "not an Ed25519 private key in PEM, without a passphrase");
      });
  }

  /**
   * Returns a token, valid for `ttl` seconds (a day), 30 days at most for a client. `sub` is the
   * client's id. `attributes` decide which changes the client is notified of: take them from the
   * session, never from the request.
   */
  async token(app: string, sub: string, options: {
    scope?: string; attributes?: Record<string, string | string[]>; ttl?: number;
  } = {}): Promise<string> {
    const { scope = "client", attributes, ttl = 86_400 } = options;
    const iat = Math.floor(Date.now() / 1_000), exp = iat + Math.floor(ttl);
    const claims = {
      ...this.#claims, app: checked("app", app), sub: checked("sub", sub), scope, attributes, iat,
      exp, jti: crypto.randomUUID(),
    };
    const signed = [this.#head, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
    const signature = await crypto.subtle.sign("Ed25519", this.#key, Buffer.from(signed));
    return `${signed}.${Buffer.from(signature).toString("base64url")}`;
  }
}

/** Verifies notifications with the gateway's published keys, which it fetches and caches. */
export class NotificationVerifier {
  readonly #issuer: string;
  readonly #app: string;
  readonly #url: string;
  #keys = new Map<string, PublicKey>();
  #fetched = 0;
  #tried = -Infinity;
  #failure: unknown;
  #fetching: Promise<void> | undefined;

  /** `issuer` is the gateway's `publicURL`; `keysURL` is needed if its keys are elsewhere. */
  constructor(issuer: string, app: string, keysURL?: string) {
    [this.#issuer, this.#app] = [issuer, app];
    this.#url = secure(keysURL ?? `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`);
  }

  /**
   * Returns the claims of a compact JWS. The same `jti` may arrive more than once. Throws
   * Rejection, or GatewayError if there are no keys: then verify it again later.
   */
  async verify(notification: string, now = Date.now() / 1_000): Promise<Record<string, any>> {
    if (notification.length > notificationBytes)
      throw new Rejection("size", `more than ${notificationBytes} bytes`);
    const parts = notification.split(".");
    if (parts.length !== 3) throw new Rejection("form", "not three parts joined by dots");
    const header = object(bytes(parts[0]));
    if (!/^(application\/)?timeline-reload\+jwt$/i.test(String(header.typ)))
      throw new Rejection("typ", "not that of a notification, timeline-reload+jwt");
    if ("crit" in header) throw new Rejection("crit", "an extension that is not known");
    if (typeof header.kid !== "string") throw new Rejection("kid", "missing");
    const { alg, key } = await this.#key(header.kid);
    if (header.alg !== alg) throw new Rejection("alg", `the key is for ${alg}`);
    const signed = Buffer.from(`${parts[0]}.${parts[1]}`);
    if (!await crypto.subtle.verify(algorithms[alg], key, bytes(parts[2]), signed))
      throw new Rejection("signature", "does not fit the key that kid names");
    const claims = object(bytes(parts[1]));
    if (claims.aud !== this.#app) throw new Rejection("aud", `for another app, not ${this.#app}`);
    if (claims.iss !== this.#issuer) throw new Rejection("iss", `not by ${this.#issuer}`);
    if (typeof claims.exp !== "number" || !(claims.exp > now - expiryTolerance))
      throw new Rejection("exp", "the notification has expired; poll with the same cursor");
    return claims;
  }

  async #key(kid: string): Promise<PublicKey> {
    const cached = () =>
      performance.now() - this.#fetched < keysSeconds * 1_000 ? this.#keys.get(kid) : undefined;
    let key = cached();
    if (key) return key;
    if (!this.#fetching && performance.now() - this.#tried >= keysPauseSeconds * 1_000)
      this.#fetching = this.#fetch().finally(() => { this.#fetching = undefined; });
    await this.#fetching; // The others wait for the same request.
    key = cached();
    if (!key) throw this.#failure ?? new Rejection("kid", `no key of ${this.#url} has this name`);
    return key;
  }

  /** Replaces the keys. After a failure, those there are stay until their time is over. */
  async #fetch(): Promise<void> {
    const now = this.#tried = performance.now(), keys = new Map<string, PublicKey>();
    try {
      const { status, data } = await send(this.#url, keysAttemptSeconds);
      const listed = parsed(data)?.keys;
      if (!Array.isArray(listed)) throw new GatewayError(this.#url, status, "not a JWK set");
      for (const jwk of listed) {
        const key = await publicKey(jwk);
        if (key) keys.set(jwk.kid, key);
      }
      [this.#keys, this.#fetched, this.#failure] = [keys, now, undefined];
    } catch (error) {
      this.#failure = error;
    }
  }
}

/**
 * Verifies a webhook, or a question for a Live Activity's content; returns its id and document.
 *
 * `keys` are the `webhookKeys` of the registration's answer, or the `contentKeys` of the catalog's,
 * and `body` the bytes as they came. Throws Rejection: answer 400. A retry has the same id: answer
 * it 2xx, and do not act on it twice. A gateway signs for all its apps by the same keys: a question
 * that is not of `app` is rejected here, and of a webhook only the notifications that
 * NotificationVerifier accepts are the app's.
 */
export async function verifyWebhook(
  keys: string[], app: string, fields: Headers | Record<string, string | string[] | undefined>,
  body: Uint8Array | ArrayBuffer, now = Date.now() / 1_000,
): Promise<{ id: string; document: Record<string, any> }> {
  const named = (name: string) =>
    typeof fields.get === "function" ? fields.get(name) : (fields as any)[name];
  const [id, stamp, listed] = ["webhook-id", "webhook-timestamp", "webhook-signature"]
    .map((name) => String(named(name) ?? ""));
  if (!/^[!-\-/-~]{1,256}$/.test(id))
    throw new Rejection("webhook-id", "missing, or not visible ASCII without dots");
  if (!/^[0-9]{1,12}$/.test(stamp))
    throw new Rejection("webhook-timestamp", "missing, or not seconds since 1970");
  if (!(Math.abs(now - Number(stamp)) <= webhookTolerance))
    throw new Rejection("webhook-timestamp", `more than ${webhookTolerance} s from now`);
  const publics = await Promise.all(keys.map((key) => {
    const raw = key.startsWith("whpk_") ? Buffer.from(key.slice(5), "base64") : undefined;
    if (raw?.length !== 32) throw new Rejection("keys", "not each is whpk_ and 32 bytes in base64");
    return crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  }));
  const data = new Uint8Array(body), head = Buffer.from(`${id}.${stamp}.`);
  const content = Buffer.concat([head, data]);
  // A rotation has two. Anybody can send very many, each of which costs a check.
  const entries = listed.split(" ").slice(0, webhookSignatures)
    .filter((entry) => /^v1a,[A-Za-z0-9+/]{86}==$/.test(entry));
  const checks = entries.flatMap((entry) => publics.map((key) =>
    crypto.subtle.verify("Ed25519", key, Buffer.from(entry.slice(4), "base64"), content)));
  if (!(await Promise.all(checks)).includes(true))
    throw new Rejection("webhook-signature", "no v1a signature by one of the keys");
  const document = object(data);
  if (!("notifications" in document) && document.app !== app)
    throw new Rejection("app", `a question for another app, not ${app}`);
  return { id, document };
}

type PublicKey = { alg: string; key: CryptoKey };

/** What Web Crypto needs to import a key, and to check a signature. */
const algorithms: Record<string, any> = {
  EdDSA: { name: "Ed25519" }, ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
};

/** Returns a key and its algorithm; undefined if it is for something else. */
async function publicKey(jwk: any): Promise<PublicKey | undefined> {
  const { kty, crv, kid, x, y, use = "sig" } = jwk ?? {};
  const alg: string = jwk?.alg ?? (crv === "P-256" ? "ES256" : "EdDSA");
  if (!["OKP Ed25519 EdDSA", "EC P-256 ES256"].includes(`${kty} ${crv} ${alg}`)) return undefined;
  if (typeof kid !== "string" || use !== "sig") return undefined;
  return crypto.subtle.importKey("jwk", { kty, crv, x, y }, algorithms[alg], false, ["verify"])
    .then((key) => ({ alg, key }), () => undefined);
}

/** Returns the status and the body of a 2xx answer. Throws GatewayError. */
async function send(
  url: string, seconds: number, init: RequestInit = {}, first = 0,
): Promise<{ status: number; data: Uint8Array }> {
  let answer: Response | undefined, size = 0;
  const pieces: Uint8Array[] = [];
  try {
    const signal = (AbortSignal as any).timeout(seconds * 1_000);
    // A redirect would take the token to another server: it is an error.
    answer = await fetch(url, { ...init, redirect: "manual", signal });
    for await (const piece of (answer.body ?? []) as any) {
      pieces.push(piece);
      if ((size += piece.length) > answerBytes) break;
    }
  } catch (error) {
    if (!answer || answer.ok)
      throw new GatewayError(url, 0, String((error as Error).cause ?? error));
  }
  const data = Buffer.concat(pieces), { ok, status, headers } = answer!;
  if (ok && size <= answerBytes) return { status, data };
  const after = /^[0-9]{1,9}$/.exec(headers.get("retry-after") ?? "");
  throw new GatewayError(url, status, data.toString(), Number(after ?? 0), first);
}

function secure(url: string): string {
  if (!url.startsWith("https://")) throw new Rejection("url", `${url} is not https://`);
  return url.replace(/\/$/, "");
}

function checked(field: string, text: string): string {
  if (!/^[A-Za-z0-9._~-]{1,128}$/.test(text))
    throw new Rejection(field, "not 1 to 128 characters of A-Z a-z 0-9 . _ ~ -");
  return text;
}

/** Returns what base64url without padding stands for; other encodings of it are faults. */
function bytes(text: string): any {
  const data = Buffer.from(text, "base64url");
  if (data.toString("base64url") !== text) throw new Rejection("form", "not strict base64url");
  return data;
}

function object(data: Uint8Array): Record<string, any> {
  const value = parsed(data);
  if (!value) throw new Rejection("form", "not a JSON object");
  return value;
}

/** Returns the JSON object that the bytes are, or undefined. */
function parsed(data: Uint8Array): Record<string, any> | undefined {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
    return value && typeof value === "object" && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
