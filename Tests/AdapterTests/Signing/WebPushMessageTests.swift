import Foundation
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

/// Web Push messages, held against the examples of the RFCs.
@Suite struct WebPushMessageTests {
    private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.url.decode(text)) }

    /// Returns a P-256 key from its private number.
    private func key(_ number: String) throws -> SigningKey {
        // RFC 5208 and RFC 5915: what precedes the number of such a key in PKCS#8.
        let prefix = "MEECAQAwEwYHKoZIzj0CAQYIKoZIzj0DAQcEJzAlAgEBBCA="
        let der = try #require(Base64.standard.decode(prefix)) + bytes(number)
        let (label, text) = ("PRIVATE KEY", Base64.standard.string(der))
        return try SigningKey(
            pem: Array("-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n".utf8))
    }

    @Test func `the example of RFC 8188, section 3.1`() throws {
        let message = try WebPushMessage.aes128gcm(
            Array("I am the walrus".utf8), padding: 0, secret: bytes("yqdlZ-tYemfogSmv7Ws5PQ"),
            salt: bytes("I1BsxtFttlv3u_Oo94xnmw"), keyID: [])
        #expect(
            Base64.url.string(message)
                == "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg")
    }

    @Test func `the example of RFC 8291, section 5`() throws {
        let message = try WebPushMessage.encrypt(
            Array("When I grow up, I want to be a watermelon".utf8), padding: 0,
            p256dh: bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
            ),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
            key: key("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"),
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"))
        #expect(
            Base64.url.string(message)
                == "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vC"
                + "YLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXL"
                + "WyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
    }

    @Test func `a message is padded, fits what services accept, and never repeats a key`() throws {
        let subscription = try SigningKey(generating: .es256)
        let point = try bytes(subscription.applicationServerKey)
        func encrypted(_ count: Int) throws -> [UInt8] {
            try WebPushMessage.encrypt(
                [UInt8](repeating: 7, count: count), p256dh: point,
                auth: [UInt8](repeating: 1, count: 16))
        }
        #expect(try encrypted(0).count == encrypted(511).count)
        #expect(try encrypted(512).count == encrypted(511).count + 512)
        #expect(try encrypted(WebPushMessage.contentBytesMax).count == 4_096)
        #expect(try encrypted(5).prefix(86) != encrypted(5).prefix(86))
        #expect(throws: SigningError.self) { try encrypted(WebPushMessage.contentBytesMax + 1) }
    }

    @Test func `a key that is no point of the curve is refused`() throws {
        #expect(throws: SigningError.self) {
            try WebPushMessage.encrypt(
                [1], p256dh: [4] + [UInt8](repeating: 1, count: 64),
                auth: [UInt8](repeating: 1, count: 16))
        }
    }
}
