import Foundation

/// The compiler's plugin for `#Preview`. It exchanges JSON with the compiler, each message after
/// its length in eight bytes, the lowest first.
@main
enum PreviewPlugin {
    static func main() {
        while let message = next() {
            guard let bytes = try? JSONSerialization.data(withJSONObject: answer(to: message))
            else { return }
            var length = UInt64(bytes.count).littleEndian
            FileHandle.standardOutput.write(Data(bytes: &length, count: 8) + bytes)
        }
    }

    /// Reads the next message; `nil` at the end, and for what is none.
    private static func next() -> [String: Any]? {
        guard let header = read(8) else { return nil }
        let length = header.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let count = Int(exactly: length), let bytes = read(count) else { return nil }
        return (try? JSONSerialization.jsonObject(with: bytes)) as? [String: Any]
    }

    private static func read(_ count: Int) -> Data? {
        var data = Data()
        while data.count < count {
            guard
                let part = try? FileHandle.standardInput.read(upToCount: count - data.count),
                !part.isEmpty
            else { return nil }
            data += part
        }
        return data
    }

    private static func answer(to message: [String: Any]) -> [String: Any] {
        if message["getCapability"] != nil {
            return ["getCapabilityResult": ["capability": ["protocolVersion": 7]]]
        }
        var result: [String: Any] = ["diagnostics": [String]()]
        if let request = message["expandFreestandingMacro"] as? [String: Any],
            let discriminator = request["discriminator"] as? String,
            let syntax = request["syntax"] as? [String: Any],
            let source = syntax["source"] as? String, let list = arguments(in: source)
        {
            result["expandedSource"] = expanded(list, discriminator)
        }
        return ["expandMacroResult": result]
    }

    /// Returns what follows the macro's name. Comments may stand before it.
    private static func arguments(in source: String) -> String? {
        let comments = #/(?:\s+|//[^\n]*|/\*(?s:.*?)\*/)*/#
        guard let match = source.prefixMatch(of: comments),
            let name = source[match.range.upperBound...].range(of: "Preview")
        else { return nil }
        return String(source[name.upperBound...])
    }

    /// Returns the registration of a preview with these arguments, which are those of the macro:
    /// a function that the loader calls before the program begins. The linker keeps the section.
    private static func expanded(_ arguments: String, _ discriminator: String) -> String {
        """
        @section(".init_array") @used
        private nonisolated let \(discriminator)7PreviewfMu_: @convention(c) () -> Void = {
            TimelineRuntime.WidgetPreviews.register\(arguments)
        }
        """
    }
}
