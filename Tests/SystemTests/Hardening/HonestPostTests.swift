import Foundation
import GatewayTestSupport
import Testing

/// Other people's clients that post a lot over one connection.
@Suite("Honest posts", .othersUnaffected)
struct HonestPostTests {
    /// The way in which a client writes its body.
    enum Way: String, CaseIterable {
        /// A head, and the body in one piece.
        case whole
        /// A chunk for each token of the JSON text.
        case tokens
        /// As `whole`, with each record padded to a multiple of 4 KiB.
        case padded
        /// As `whole`, over HTTP/2.
        case http2
    }

    @Test("A connection takes 50 posts of 100 events", arguments: Way.allCases)
    func fiftyPosts(_ way: Way) async throws {
        let target = try await Target.shared()
        let directory = try GatewayProcess.temporaryDirectory()
        let program = directory + "/posts.py"
        try Self.program.write(toFile: program, atomically: true, encoding: .utf8)
        let url = "\(target.process.url)/v1/apps/\(Target.app)/changes"
        let run = try await elsewhere {
            try GatewayProcess.run(
                ["python3", program, way.rawValue, url, target.process.ca, target.backend],
                program: "/usr/bin/env", seconds: 3 * Patience.seconds)
        }
        #expect(run.exit == .status(0), "\(run.output)")
        #expect(run.output == "50 posts\n")
    }

    /// An answer may come before the body has been sent, as it depends on the head only.
    @Test("Early answers are read, and cost no connection that can go on")
    func earlyAnswers() async throws {
        let target = try await Target.shared()
        let url = "\(target.process.url)/v1/apps/\(Target.app)/changes"
        let run = try await elsewhere {
            try GatewayProcess.run(
                ["python3", "-c", Self.early, url, target.process.ca, target.backend],
                program: "/usr/bin/env", seconds: 3 * Patience.seconds)
        }
        #expect(run.exit == .status(0), "\(run.output)")
        #expect(run.output == "61 answers\n")
    }

    /// Posts what is refused, and then what is not, with `http.client`; and 4 MB in 4 seconds.
    private static let early = """
        import http.client, json, ssl, sys, time, urllib.parse
        url, ca, token = sys.argv[1:]
        parts = urllib.parse.urlsplit(url)
        headers = {"Authorization": "Bearer " + token,
                   "Content-Type": "application/cloudevents+json"}
        refused = dict(headers, **{"Content-Encoding": "gzip"})

        def connect():
            connection = http.client.HTTPSConnection(
                parts.netloc, context=ssl.create_default_context(cafile=ca))
            connection.connect()
            # A connection that ended is an error here.
            connection.auto_open = 0
            return connection

        def expect(connection, status):
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == status, (answer.status, text)
            return answer

        answers = 0
        connection = connect()
        for number in range(30):
            body = json.dumps({"specversion": "1.0", "type": "t", "source": "honest-early",
                               "id": str(number), "data": {"entity": "CharacterDetail",
                               "id": "nobody", "properties": ["avatar"]}})
            for fields, status in [(refused, 415), (headers, 202)]:
                connection.request("POST", parts.path, body, fields)
                expect(connection, status)
                answers += 1
        connection = connect()
        connection.putrequest("POST", parts.path)
        for name, value in dict(refused, **{"Content-Length": "4000000"}).items():
            connection.putheader(name, value)
        connection.endheaders()
        for _ in range(40):
            connection.send(b"x" * 100000)
            time.sleep(0.1)
        assert expect(connection, 415).getheader("Connection") == "close"
        print(answers + 1, "answers")
        """

    /// Posts with `http.client`, or with curl for HTTP/2, and fails when the connection ends.
    private static let program = """
        import http.client, json, os, subprocess, sys, urllib.parse
        way, url, ca, token = sys.argv[1:]
        if way == "padded" and "OPENSSL_CONF" not in os.environ:
            path = os.path.join(os.path.dirname(sys.argv[0]), "openssl.cnf")
            with open(path, "w") as file:
                file.write("openssl_conf = a\\n[a]\\nssl_conf = b\\n[b]\\nsystem_default = c\\n"
                           "[c]\\nRecordPadding = 4096\\n")
            os.environ["OPENSSL_CONF"] = path
            os.execvp("python3", ["python3"] + sys.argv)
        import ssl

        def batch(number):
            return [{"specversion": "1.0", "type": "character.changed", "source": "honest-" + way,
                     "id": "%d-%d" % (number, event), "data": {"entity": "CharacterDetail",
                     "id": "nobody-%d" % event, "properties": ["avatar", "healthLevel"]}}
                    for event in range(100)]

        headers = {"Authorization": "Bearer " + token,
                   "Content-Type": "application/cloudevents-batch+json"}
        if way == "http2":
            arguments = ["curl", "--silent", "--fail", "--http2"]
            for number in range(50):
                body = os.path.join(os.path.dirname(sys.argv[0]), "body-%d" % number)
                with open(body, "w") as file:
                    json.dump(batch(number), file)
                arguments += ["--next"] if number else []
                arguments += ["--cacert", ca, "--data-binary", "@" + body, "--output", "/dev/null",
                              "--write-out", "%{http_version} %{http_code} %{num_connects}\\n", url]
                for name, value in headers.items():
                    arguments += ["--header", name + ": " + value]
            lines = subprocess.run(arguments, stdout=subprocess.PIPE, text=True).stdout.splitlines()
            expected = ["2 202 1"] + 49 * ["2 202 0"]
            assert lines == expected, lines
        else:
            parts = urllib.parse.urlsplit(url)
            connection = http.client.HTTPSConnection(
                parts.netloc, context=ssl.create_default_context(cafile=ca))
            connection.connect()
            # A connection that ended is an error here.
            connection.auto_open = 0
            for number in range(50):
                body = json.dumps(batch(number)).encode()
                if way == "tokens":
                    body = (text.encode() for text in json.JSONEncoder().iterencode(batch(number)))
                connection.request("POST", parts.path, body, headers, encode_chunked=way == "tokens")
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status == 202, (number, answer.status, text)
        print("50 posts")
        """
}
