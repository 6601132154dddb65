/// The reason why a test or a fault row cannot go on.
package struct TestFailure: Error, CustomStringConvertible {
    /// Describes what is wrong, with what was received or the end of standard error.
    package let description: String

    /// A failure in these words.
    package init(_ description: String) { self.description = description }
}
