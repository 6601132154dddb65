import WidgetModel

/// A program of this package that goes on beside the test; killed when this value goes.
package final class TestProgram: Sendable {
    private let child: GatewayProcessChild

    /// Starts a program by its path.
    ///
    /// - Parameter environment: Variables set beside this process's own.
    /// - Throws: ``GatewayProcessError``.
    package init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:]
    ) throws {
        child = try GatewayProcessChild(arguments, environment: environment, program: program)
    }

    deinit { kill() }

    /// SIGKILL; returns when it is gone.
    package func kill() {
        child.signal(9)
        _ = child.waitForExit(seconds: 10)
    }

    /// SIGINT; does not wait.
    package func interrupt() {
        child.signal(2)
    }

    /// What it wrote to standard output so far.
    package var output: String { child.outputSoFar }

    /// The end of what it wrote to standard error.
    package var standardErrorTail: String { child.standardErrorTail }

    /// A line of its standard output, which is waited for, as a JSON object; `nil` when it is none.
    ///
    /// - Throws: ``GatewayProcessError`` when there is no such line within a minute.
    package func json(line index: Int) throws -> JSONObject? {
        guard let line = child.waitForLine(index, seconds: 60) else {
            throw GatewayProcessError(
                "there is no line \(index):\n\(output)\n\(child.standardErrorTail)")
        }
        return try? JSONValue(parsing: Array(line.utf8)).objectValue
    }

    /// How it ended; `nil` when it did not within `seconds`.
    package func waitForExit(seconds: Double) -> GatewayProcessExit? {
        child.waitForExit(seconds: seconds)
    }
}
