import WidgetModel

/// Keeps secrets out of the log, whatever a record contains: fields with secret names, and text
/// that looks like a secret anywhere.
enum Redaction {
    /// The replacement for a secret.
    static let mask = "[redacted]"

    /// The names of secret fields, in lower case.
    private static let fields: Set<String> = [
        "authorization", "body", "cookie", "data", "parameters", "password", "payload", "pem",
        "privatekey", "pushtoken", "secret", "token",
    ]
    /// The minimum number of consecutive hexadecimal digits that counts as a push token.
    private static let digitsMin = 40

    /// The loggable value of a field.
    static func text(_ text: String, ofField field: String) -> String {
        fields.contains(field.lowercased()) ? mask : self.text(text)
    }

    /// The text with JWTs and push tokens masked.
    static func text(_ text: String) -> String {
        // Nearly all texts lack a word that is long enough.
        guard text.utf8.count >= digitsMin else { return text }
        var result: [UInt8] = []
        var word: [UInt8] = []
        func flush() {
            result += isSecret(word) ? Array(mask.utf8) : word
            word.removeAll(keepingCapacity: true)
        }
        for byte in text.utf8 {
            if isWordByte(byte) {
                word.append(byte)
            } else {
                flush()
                result.append(byte)
            }
        }
        flush()
        return String(decoding: result, as: UTF8.self)
    }

    /// The letters of base64url, and full stops between the parts of a JWT.
    private static func isWordByte(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || "-_.".utf8.contains(byte)
    }

    private static func isSecret(_ word: [UInt8]) -> Bool {
        guard word.count >= digitsMin else { return false }
        let isHexadecimal = word.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
        // A JWT's header is JSON: `{"` in base64url.
        return isHexadecimal || (word.starts(with: "eyJ".utf8) && word.contains(UInt8(ascii: ".")))
    }
}
