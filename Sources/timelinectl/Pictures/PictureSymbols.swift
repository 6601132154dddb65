/// Drawings for common system images, made for this table. They resemble the platform's own only in
/// meaning.
enum PictureSymbols {
    /// Returns the drawing of a system image as an SVG path in a square of 24 units; overlapping
    /// parts are holes. A variant such as `bolt.fill` without a drawing of its own has that of
    /// `bolt`.
    static func path(of name: String) -> String? {
        var parts = name.prefix(100).split(separator: ".")
        while !parts.isEmpty, paths[parts.joined(separator: ".")] == nil { parts.removeLast() }
        return paths[parts.joined(separator: ".")]
    }

    private static let disc = "M12 2a10 10 0 1 0 0 20a10 10 0 1 0 0-20z"
    private static let ring = disc + "M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16z"
    private static let check = "M10.5 17L6 12.5L7.5 11l3 3L16.5 8L18 9.5z"
    private static let paths: [String: String] = [
        "arrow.clockwise": "M12 4a8 8 0 1 0 8 8h-2.5a5.5 5.5 0 1 1-5.5-5.5V10l6-4.7L12 .6z",
        "arrow.down": "M12 21l-8-8h5.5V3h5v10H20z", "arrow.up": "M12 3l8 8h-5.5v10h-5V11H4z",
        "bell": "M12 2a6 6 0 0 0-6 6v5l-2 4h16l-2-4V8a6 6 0 0 0-6-6zM9.5 19h5a2.5 2.5 0 0 1-5 0z",
        "bolt": "M13 2L4 14h6l-1 8l9-12h-6z", "checkbox.off": "M3 3h18v18H3zM5 5v14h14V5z",
        "checkbox.on": "M3 3h18v18H3zM5 5v14h14V5z\(check)",
        "checkmark": "M9 19L3 13l2-2l4 4L19 5l2 2z", "checkmark.circle": "\(ring)\(check)",
        "checkmark.circle.fill": "\(disc)\(check)", "chevron.right": "M8 3l9 9l-9 9l-2-2l7-7l-7-7z",
        "circle": ring, "circle.fill": disc, "clock": "\(ring)M11 6h2v6l4 2.5l-1 1.7l-5-3.2z",
        "cloud": "M7 20a5 5 0 0 1-.5-10A6 6 0 0 1 18 9a5.5 5.5 0 0 1-.5 11z",
        "drop": "M12 2C8 8 5 11 5 15a7 7 0 0 0 14 0c0-4-3-7-7-13z",
        "exclamationmark.triangle": "M12 2L1 21h22zM11 9h2v6h-2zM11 16.5h2v2h-2z",
        "flame": "M12 2c1 5 6 7 6 12.5a6 6.5 0 0 1-12 0c0-3 2-4.5 3-6.5l1.5 3C12.5 9 13 5.5 12 2z",
        "heart": "M12 21C5 15 2 12 2 8a5 5 0 0 1 10-1.5A5 5 0 0 1 22 8c0 4-3 7-10 13z",
        "house": "M12 3L2 12h3v9h5v-6h4v6h5v-9h3z",
        "info.circle": "\(ring)M11 7h2v2h-2zM11 10.5h2v6.5h-2z",
        "lock": "M6 10V8a6 6 0 0 1 12 0v2h2v12H4V10zM8.5 10h7V8a3.5 3.5 0 0 0-7 0z",
        "person": "M12 3a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9zM3 21c0-5 4-8 9-8s9 3 9 8z",
        "play": "M6 3l14 9l-14 9z", "plus": "M10.5 4h3v6.5H20v3h-6.5V20h-3v-6.5H4v-3h6.5z",
        "star": "M12 2l3 6.6l7.2.8l-5.4 4.9l1.5 7.1L12 17.8l-6.3 3.6l1.5-7.1L1.8 9.4l7.2-.8z",
        "sun": "M12 7a5 5 0 1 0 .1 0zM11 1h2v4h-2zm0 18h2v4h-2zM1 11h4v2H1zm18 0h4v2h-4z",
        "switch.off": "M7 6h10a6 6 0 0 1 0 12H7a6 6 0 0 1 0-12zM7 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8z",
        "switch.on": "M7 6h10a6 6 0 0 1 0 12H7a6 6 0 0 1 0-12zM17 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8z",
        "xmark": "M5 3l7 7l7-7l2 2l-7 7l7 7l-2 2l-7-7l-7 7l-2-2l7-7l-7-7z",
    ]
}
