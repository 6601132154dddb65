import GatewaySigning
import WidgetModel

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// Returns a compact JWS with any header and payload, signed with `key` whatever the header says.
func forge(header: String, payload: String, by key: SigningKey) throws -> [UInt8] {
    let input = Base64.url.string(bytes(header)) + "." + Base64.url.string(bytes(payload))
    return bytes(input + "." + Base64.url.string(try key.sign(bytes(input))))
}

/// Returns the error that `body` throws.
func signingFault<Made>(_ body: () throws -> Made) -> SigningError? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? SigningError
    }
}
