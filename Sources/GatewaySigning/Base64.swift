/// Base64 with padding (RFC 4648 section 4), for those who do not take base64url.
enum Base64 {
    /// The letters of `bytes`.
    static func string(_ bytes: [UInt8]) -> String {
        var letters = Base64URL.encode(bytes)
        for (index, letter) in letters.enumerated() {
            switch letter {
            case UInt8(ascii: "-"): letters[index] = UInt8(ascii: "+")
            case UInt8(ascii: "_"): letters[index] = UInt8(ascii: "/")
            default: break
            }
        }
        while letters.count % 4 != 0 { letters.append(UInt8(ascii: "=")) }
        return String(decoding: letters, as: UTF8.self)
    }
}
