// A service worker for Web Push, to copy and change. "Web Push" of Deploy/push.md has the page's part.
// Not run with a push service of a browser: the tests reach none.
import { NotificationVerifier } from "./timeline-gateway.js";

const [url, app] = ["https://gateway.example.com", "com.mygame"];
// The page registers `push.js?client=…`.
const path = `${url}/v1/apps/${app}/clients/${new URLSearchParams(self.location.search).get("client")}`;
const fetchBriefly = async (address, options) => {
  const answer = await fetch(address, { ...options, signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer;
};
// Both come from the app's own backend, which knows the session by a cookie. A notification names what is stale only.
const token = async () => (await fetchBriefly("/token")).text();
const news = async (claims) => (await fetchBriefly("/news", { method: "POST", body: JSON.stringify(claims) })).text();

const ask = async (method, place, body, type = "application/json") => fetchBriefly(path + place, {
  method, headers: { Authorization: `Bearer ${await token()}`, ...(body && { "Content-Type": type }) },
  body: body && JSON.stringify(body),
});
const patch = async (body) => (await ask("PATCH", "", body, "application/merge-patch+json")).json();
const verifier = new NotificationVerifier({
  app, issuer: url, load: async () => (await fetchBriefly(`${url}/.well-known/jwks.json`)).json(),
});

/** Returns what is stale: from the push, or by a poll if that is empty, expired or does not verify. */
async function read(data) {
  const verified = async ({ cursor, notifications }, now) =>
    ({ cursor, claims: await Promise.all(notifications.map((one) => verifier.verify(one, now / 1000))) });
  try {
    return await verified(data.json(), Date.now());
  } catch {
    // The worker keeps no cursor: without one everything is stale.
    const answer = await ask("GET", "/reloads");
    return verified(await answer.json(), Date.parse(answer.headers.get("Date")));
  }
}

async function show(data) {
  const stale = await read(data).catch(() => undefined);
  const body = await news(stale?.claims ?? []).catch(() => "Something changed.");
  // Browsers demand a notification for each push. One with the same tag replaces the one before.
  await self.registration.showNotification("My game", { body, tag: "timeline" });
  // Otherwise the next push says the same again.
  if (stale) await ask("POST", "/acks", { cursor: stale.cursor }).catch(() => {});
}

async function renew(subscription) {
  const { applicationServerKey } = await patch({});
  subscription ??= await self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  const { endpoint, keys } = subscription.toJSON();
  await patch({ delivery: [{ type: "stream" }, { type: "webpush", endpoint, keys }] });
  // An open page has the former registration.
  for (const page of await self.clients.matchAll()) page.postMessage("subscription");
}

self.addEventListener("push", (event) => event.waitUntil(show(event.data)));
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event.newSubscription)));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow("/"));
});
