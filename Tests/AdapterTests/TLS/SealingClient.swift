import COpenSSL
import GatewayTestSupport
import Testing

@testable import GatewayTLS

/// A client whose records a test seals itself, so that they can be such as OpenSSL never sends.
final class SealingClient {
    let client: RawClient
    private let secrets: UnsafeMutablePointer<TrafficSecrets>
    private let cipher: RecordCipher
    private var layer: RecordLayer

    /// Connects a client of TLS 1.3 and shakes hands.
    init(_ server: TestServer) throws {
        let client = try server.client {
            $0.version = TLS1_3_VERSION
            $0.suites = "TLS_AES_128_GCM_SHA256"
        }
        let cipher = try #require(RecordCipher())
        let expander = try #require(HKDFExpander())
        let ssl = try #require(client.ssl)
        TrafficSecrets.observe(SSL_get_SSL_CTX(ssl))
        let secrets = try #require(TrafficSecrets.attach(to: ssl))
        try client.handshake()
        let keys = TrafficKeys(secret: secrets.pointee.client.bytes, recordNumber: 0)
        var layer = RecordLayer(suite: .aes128GCM, sending: keys, receiving: keys)
        let isPrepared = layer.prepare(expander)
        #expect(isPrepared)
        self.client = client
        self.secrets = secrets
        self.cipher = cipher
        self.layer = layer
    }

    deinit {
        if let ssl = client.ssl { TrafficSecrets.detach(from: ssl) }
        TrafficSecrets.free(secrets)
    }

    /// Sends records at once, each of a type and its content.
    func send(_ records: [(RecordContent, [UInt8])]) throws {
        let wire = try #require(MemoryBIO.ofThread())
        wire.begin()
        defer { wire.finish() }
        for (type, content) in records {
            let isSealed = content.withUnsafeBytes { cipher.seal($0, as: type, &layer, to: wire) }
            #expect(isSealed)
        }
        try client.sendPlain(Array(wire.output))
    }
}
