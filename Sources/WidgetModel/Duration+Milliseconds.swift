extension Duration {
    /// The duration in whole milliseconds, the unit of build times in acknowledgements.
    package var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
