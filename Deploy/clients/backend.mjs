// timeline-gateway.ts for Deploy/check-backend: orders on standard input, a line each, answered so.
// usage: backend.mjs FILE, the TypeScript or what was compiled from it
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const file = await import(pathToFileURL(process.argv[2]).href);
const verifiers = new Map(), now = performance.now.bind(performance);

async function act(order) {
  // Of the keys' age.
  performance.now = order.do === "verify" ? () => order.now * 1_000 : now;
  if (order.do === "mint") {
    const signer = await file.Signer.make(order.key, order.kid, order.iss, order.aud);
    return signer.token(order.app, order.sub, order);
  }
  if (order.do === "post")
    return new file.Gateway(order.url, order.app, () => order.token)
      .post(order.events, order.patience);
  if (order.do === "event") return file.event("/game", order.change);
  if (order.do === "webhook")
    return file.verifyWebhook(
      order.keys, order.app, order.fields, Buffer.from(order.body, "base64"), order.now);
  const name = JSON.stringify(order.verifier);
  if (!verifiers.has(name)) verifiers.set(name, new file.NotificationVerifier(...order.verifier));
  return verifiers.get(name).verify(order.jws, order.now);
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await act(JSON.parse(line)).then((value) => ({ value }), (error) => {
    const text = String(error);
    if (error instanceof file.Rejection) return { rejected: error.field, text };
    if (!(error instanceof file.GatewayError)) return { failed: error.stack };
    const places = error.faults.map(({ place }) => place);
    return { refused: error.status, after: error.retryAfter, text, places };
  });
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
