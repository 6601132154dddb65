import GatewayOperations
import GatewayTelemetry
import GatewayTestSupport
import Logging
import Synchronization
import Testing
import Tracing
import WidgetModel

@testable import GatewayEngine

@Suite struct LogLevelsTests {
    private func levels(_ rules: String...) throws -> LogLevels {
        try LogLevels(standard: .info, rules: rules)
    }

    @Test func `a label has its own level, or that of the one it begins with`() throws {
        let levels = try levels("timeline-gateway.push=debug", "timeline-gateway=warning")
        #expect(levels.level(of: "timeline-gateway.push.apns") == .debug)
        #expect(levels.level(of: "timeline-gateway.push") == .debug)
        #expect(levels.level(of: "timeline-gateway.pushes") == .warning)
        #expect(levels.level(of: "other") == .info)
    }

    @Test func `requests are quiet unless the level or a rule asks for them`() throws {
        #expect(LogLevels(.info).level(of: LogLevels.requests) == .notice)
        for level in [Logger.Level.trace, .debug, .notice, .error] {
            #expect(LogLevels(level).level(of: LogLevels.requests) == level)
        }
        let levels = try levels("\(LogLevels.requests)=trace")
        #expect(levels.level(of: LogLevels.requests) == .trace)
    }

    @Test func `a field's rule is stronger than a label's, in either direction`() throws {
        let levels = try levels("client:noisy=critical", "client:mine=trace", "a=debug")
        func lets(_ level: Logger.Level, _ client: String) -> Bool {
            levels.lets(level, label: "a", own: nil, fields: ["client": client])
        }
        #expect(lets(.trace, "mine") && !lets(.trace, "other") && lets(.debug, "other"))
        #expect(!lets(.error, "noisy") && lets(.critical, "noisy"))
        #expect(levels.lowest(of: "a", own: nil) == .trace)
        #expect(!levels.lets(.debug, label: "a", own: .error, fields: [:]))
    }

    @Test(arguments: ["", "push", "push=loud", "=info", "client:x"])
    func `a rule that cannot be read is refused by its text`(rule: String) {
        #expect {
            _ = try LogLevels(standard: .info, rules: [rule])
        } throws: {
            ($0 as? LogLevels.Unreadable)?.message.contains("`\(rule)`") == true
        }
    }
}

@Suite struct RedactionTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)
    private static let jwt = "eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJlLW9mLXNvbWUtbGVuZ3Ro"

    @Test(arguments: ["token", "Authorization", "pushToken", "parameters", "payload", "secret"])
    func `a field that holds secrets says none`(field: String) {
        #expect(Redaction.text("anything", ofField: field) == "[redacted]")
    }

    @Test func `what looks like a secret is masked wherever it is`() {
        for secret in [Self.token, Self.token.uppercased(), Self.jwt] {
            for text in [secret, "Bearer \(secret)", "a=\"\(secret)\", b", "\n\(secret)\u{e9}"] {
                let masked = Redaction.text(text, ofField: "error")
                #expect(!masked.contains(secret.prefix(20)) && masked.contains("[redacted]"))
                #expect(masked.count == text.count - secret.count + Redaction.mask.count)
            }
        }
    }

    @Test(arguments: [
        "EC1BF194-B3B2-424A-89A9-5A918A6E6B5D", "a client is registered, with a long sentence",
        "/var/lib/timeline-gateway/certs/server-certificate-chain-of-the-year.pem",
        "dQw4w9WgXcQ-r3cQ_dQw4w9WgXcQ-r3cQ_dQw4w9WgXc", "",
    ])
    func `what operators need stays`(text: String) {
        #expect(Redaction.text(text, ofField: "reason") == text)
    }
}

@Suite struct GatewayLogTests {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    private func log(
        _ format: LogFormat, _ levels: LogLevels = LogLevels(), _ body: (Logger, GatewayLog) -> Void
    ) -> [String] {
        let lines = Lines()
        let log = GatewayLog(format, levels) { line in lines.all.withLock { $0.append(line) } }
        body(Logger(label: "timeline-gateway", factory: { log.handler($0) }), log)
        return lines.all.withLock { $0 }
    }

    @Test func `logfmt quotes what is not one word`() throws {
        let lines = log(.logfmt) { logger, _ in
            logger.info(
                "it is \"so\"\nsaid", metadata: ["b": "two words", "a": "one", "token": "t"])
        }
        let line = try #require(lines.first)
        #expect(
            line.drop { $0 != " " } == " level=info label=timeline-gateway "
                + "message=\"it is \\\"so\\\"\\nsaid\" a=one b=\"two words\" token=[redacted]\n")
        #expect(line.hasPrefix("time=20") && lines.count == 1)
    }

    @Test func `a line of JSON is an object that any reader takes`() throws {
        let lines = log(.json) { logger, _ in
            logger.error("broken\u{1}", metadata: ["level": "mine", "x": "\u{2028}\"é"])
        }
        let line = try #require(lines.first)
        let object = try #require(try JSONValue(parsing: Array(line.utf8)).objectValue)
        #expect(object["level"] == "error" && object["level_"] == "mine")
        #expect(object["message"] == "broken\u{1}" && object["x"] == "\u{2028}\"é")
        #expect(lines[0].split(separator: "\n").count == 1)
    }

    @Test func `a line within a span says where it belongs, and a rule may name that`() throws {
        let trace = try #require(
            TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
        var context = ServiceContext.topLevel
        context.trace = trace
        let rules = try LogLevels(
            standard: .info, rules: ["trace_id:\(trace.traceID.hexadecimal)=debug"])
        let lines = log(.logfmt, rules) { logger, _ in
            logger.debug("outside")
            ServiceContext.withValue(context) { logger.debug("inside") }
        }
        #expect(lines.count == 1)
        #expect(
            lines.first?.hasSuffix(
                " message=inside span_id=b7ad6b7169203331 "
                    + "trace_id=0af7651916cd43dd8448eb211c80319c\n") == true, "\(lines)")
    }

    @Test func `levels change while it runs, for loggers that are there already`() throws {
        let rules = try LogLevels(standard: .error, rules: ["client:mine=debug"])
        let lines = log(.logfmt) { logger, log in
            logger.debug("one")
            log.set(.logfmt, LogLevels(.debug))
            logger.debug("two")
            log.set(.logfmt, rules)
            logger.info("three", metadata: ["client": "other"])
            logger.info("four", metadata: ["client": "mine"])
            logger.error("five")
        }
        #expect(
            lines.map { $0.split(separator: "message=")[1].prefix { $0 > " " } } == [
                "two", "four", "five",
            ])
    }

    @Test(arguments: 0..<20)
    func `no control character and no end of line gets into a line`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let text = String(
            String.UnicodeScalarView(
                (0..<200).compactMap { _ in Unicode.Scalar(UInt32(random.below(300))) }))
        for format in LogFormat.allCases {
            let lines = log(format) { logger, _ in
                logger.info("\(text)", metadata: [text: "\(text)"])
            }
            #expect(lines.count == 1)
            let inner = lines[0].dropLast()
            #expect(!inner.unicodeScalars.contains { $0.value < 0x20 })
        }
    }

    @Test func `a store is reported when it begins to reject writes, and when it recovers`() {
        let lines = log(.logfmt) { logger, _ in
            let store = StoreLog(logger)
            store.succeeded()
            for _ in 0..<3 { store.failed("the disk is full") }
            for _ in 0..<3 { store.succeeded() }
            store.failed("the disk is full")
        }
        #expect(
            lines.map { $0.split(separator: "message=")[1] } == [
                "\"the store rejects writes\" reason=\"the disk is full\"\n",
                "\"the store accepts writes again\"\n",
                "\"the store rejects writes\" reason=\"the disk is full\"\n",
            ])
    }

    @Test func `what peers repeat is logged a few times, and then its number`() {
        let now = Mutex<Int64>(0)
        let lines = log(.logfmt) { logger, _ in
            let sampled = SampledLog(logger) { now.withLock { $0 } }
            for address in ["a", "a", "a", "a", "a", "b"] {
                sampled.log(.rejectedToken, of: address, ["from": "\(address)"])
            }
            // Another kind of event of the same subject.
            sampled.log(.rateLimit, of: "a", [:])
            sampled.summarize()
            now.withLock { $0 = 60_000 }
            sampled.summarize()
        }
        let rejected = #""a token was rejected""#
        #expect(
            lines.map { $0.split(separator: "message=", maxSplits: 1)[1].dropLast() } == [
                "\(rejected) from=a", "\(rejected) from=a", "\(rejected) from=a",
                "\(rejected) from=b",
                #""requests exceed a rate""#,
                #""similar messages of the last minute were left out" count=2 event=\#(rejected) subject=a"#,
            ])
    }

    @Test func `nothing is counted for a level that is not logged`() {
        let lines = log(.logfmt, LogLevels(.error)) { logger, log in
            let sampled = SampledLog(logger) { 0 }
            for _ in 0..<9 { sampled.log(.rateLimit, of: "a", [:]) }
            log.set(.logfmt, LogLevels())
            sampled.log(.rateLimit, of: "a", [:])
            sampled.summarize(atEnd: true)
        }
        #expect(lines.count == 1)
    }
}
