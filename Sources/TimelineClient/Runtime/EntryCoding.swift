import Foundation

/// Writes and reads the entries of one `Codable` entry type.
struct EntryCoding: Sendable {
    /// Entries of one timeline larger than this are not archived but built again after a restart.
    static let timelineBytesMax = 256 * 1024

    let encode: @Sendable ([any TimelineEntry]) -> String?
    let decode: @Sendable (String) -> [any TimelineEntry]?

    /// `nil` when the type is not `Codable`.
    init?<Entry: TimelineEntry>(_ type: Entry.Type) {
        guard let type = type as? any (TimelineEntry & Codable).Type else { return nil }
        self.init(codable: type)
    }

    private init<Entry: TimelineEntry & Codable>(codable type: Entry.Type) {
        encode = { entries in
            let own = entries.compactMap { $0 as? Entry }
            guard own.count == entries.count, let data = try? JSONEncoder().encode(own),
                data.count <= Self.timelineBytesMax
            else { return nil }
            return String(decoding: data, as: UTF8.self)
        }
        decode = { text in try? JSONDecoder().decode([Entry].self, from: Data(text.utf8)) }
    }
}
