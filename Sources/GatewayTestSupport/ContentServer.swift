import Foundation
import Synchronization
import WidgetModel

/// The backends of apps that say what Live Activities show, with another language's TLS and HTTP:
/// at some paths they do what none should.
package final class ContentServer: Sendable {
    /// Prints each question with its path. Answers with the number of the hero, and whom it is for,
    /// but `/moved` redirects to `/good`, `/endless` never ends, `/drip` sends a byte at a time,
    /// `/silent` never answers, `/status` answers 500, `/invalid` half of a document and `/large`
    /// too much.
    private static let handler = """
            def do_POST(self):
                path, asked = self.path, json.loads(self.body())
                state = {"mark": "s3cr3t", "number": 0}
                answer = {"event": "update", "contentState": state, "relevanceScore": 50}
                file = f"{arguments[0]}/{asked['attributes'].get('hero')}.json"
                if os.path.exists(file): answer |= json.load(open(file))
                answer["contentState"]["for"] = asked.get("client", "all")
                say({"path": path, "asked": asked})
                if path == "/silent": threading.Event().wait()
                if path == "/large": answer["contentState"]["text"] = "x" * 5000
                content = json.dumps(answer).encode()
                pieces = [content[:-1] if path == "/invalid" else content]
                self.send_response({"/moved": 307, "/status": 500}.get(path, 200))
                self.send_header("location", "/good")
                if path == "/endless": pieces = (b" " * 65536 for _ in range(1 << 14))
                elif path == "/drip": pieces = (time.sleep(0.1) or b" " for _ in range(4000))
                else: self.send_header("content-length", str(len(pieces[0])))
                self.close_connection = path in ("/endless", "/drip")
                self.end_headers()
                try:
                    for piece in pieces: self.wfile.write(piece)
                except OSError: self.close_connection = True
        """

    private let server: PythonServer
    private let folder: String
    package var port: Int64 { server.port }
    /// How often each hero has changed.
    private let numbers = Mutex<[String: Int64]>([:])

    /// Starts the server at `host`, an address of this machine, with its files in `folder`.
    package init(
        in folder: String, certificate: String, key: String, host: String = "127.0.0.1"
    ) throws {
        self.folder = folder
        server = try PythonServer(
            Self.handler, in: folder, certificate: (certificate, key), host: host,
            arguments: [folder])
    }

    /// The number of a hero, which rises with each change.
    package func number(of hero: String) -> Int64 { numbers.withLock { $0[hero] ?? 0 } }

    /// Raises the number of a hero, and returns it once the sources answer with it. If `ends`, the
    /// hero's activities end with it.
    package func raise(_ hero: String, ends: Bool) throws -> Int64 {
        let number = number(of: hero) + 1
        let answer: JSONValue = [
            "event": ends ? "end" : "update", "contentState": ["number": .integer(number)],
        ]
        try answer.text.write(
            toFile: "\(folder)/\(hero).json", atomically: true, encoding: .utf8)
        numbers.withLock { $0[hero] = number }
        return number
    }

    /// The questions so far, each with its `path` and what was `asked`.
    package var questions: [JSONObject] { server.lines }
}
