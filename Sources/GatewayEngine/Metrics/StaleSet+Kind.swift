import GatewayCore

extension StaleSet {
    /// The kind as a metric label; ``RecorderByKind/several`` for more than one.
    package var kindLabel: String {
        guard !all, let kind = names.first?.kind, names.allSatisfy({ $0.kind == kind }) else {
            return RecorderByKind.several
        }
        return kind
    }
}
