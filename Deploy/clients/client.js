// Node's fetch (HTTP/1.1) or node:http2 for Deploy/check-clients; NODE_EXTRA_CA_CERTS names the CA:
//     node client.js h1|h2 https://localhost:PORT
// Reads orders from standard input, a line each, and sends all of them at once. Writes a line for
// each line of a stream, and at last one of the status and the body, or the error.
const fs = require("fs"), http2 = require("http2"), readline = require("readline");
const { pipeline, Readable } = require("stream");
// Of `localhost`, Node 18 tries the first address alone; the gateway has 127.0.0.1.
require("dns").setDefaultResultOrder("ipv4first");
const [protocol, base] = process.argv.slice(2);
const running = new Map();
const say = (report) => process.stdout.write(JSON.stringify(report) + "\n");

function* pieces(body) {
  for (let start = 0, turn = 0; start < body.length; turn++) {
    const size = 1 + ((turn * 7) % 16);
    yield body.subarray(start, start + size);
    start += size;
  }
}

async function byFetch(order, body, signal) {
  if (body && order.inPieces) body = Readable.toWeb(Readable.from(pieces(body)));
  const { method, headers } = order;
  const answer = await fetch(base + order.path, { method, headers, body, signal, duplex: "half" });
  return [answer.status, answer.body ?? []];
}

let session;
function byHTTP2(order, body, signal) {
  if (!session || session.closed || session.destroyed) {
    session = http2.connect(base).on("error", () => {}); // Its streams say so, too.
  }
  const fields = { ":method": order.method, ":path": order.path, ...order.headers };
  const stream = session.request(fields, { signal, endStream: !body });
  return new Promise((resolve, reject) => {
    stream.once("response", (answer) => resolve([answer[":status"], stream]));
    stream.once("error", reject);
    stream.once("close", () => reject(new Error("closed without an answer")));
    if (body && order.inPieces) pipeline(Readable.from(pieces(body)), stream, () => {});
    else if (body) stream.end(body);
  });
}

async function send(order, signal) {
  const body = order.file ? fs.readFileSync(order.file) : undefined;
  const [status, chunks] = await (protocol === "h2" ? byHTTP2 : byFetch)(order, body, signal);
  let text = "";
  for await (const chunk of chunks) {
    text += Buffer.from(chunk).toString();
    if (!order.stream || status !== 200) continue;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) say({ id: order.id, line });
  }
  say({ id: order.id, status, text });
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const order = JSON.parse(line);
  if (order.cancel) return running.get(order.id).abort();
  const controller = new AbortController();
  running.set(order.id, controller);
  const timer = setTimeout(() => controller.abort(), order.patience * 1000);
  send(order, controller.signal)
    .catch((error) => say({ id: order.id, error: `${error} ${error.cause ?? ""}` }))
    .finally(() => clearTimeout(timer));
}).on("close", () => process.exit());
