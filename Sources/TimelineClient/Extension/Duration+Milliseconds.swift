extension Duration {
    /// Whole milliseconds, as acknowledgements tell how long a build took.
    var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
