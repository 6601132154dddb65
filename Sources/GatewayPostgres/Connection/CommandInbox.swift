import Synchronization

/// The commands of other threads that wait for the thread of the loop. Its callers bound it: each
/// command belongs to a request in work.
final class CommandInbox<Command: Sendable>: Sendable {
    private let loop: PostgresLoop
    private let commands = Mutex<[Command]>([])

    init(_ loop: PostgresLoop) { self.loop = loop }

    /// Appends a command and wakes the loop if it may wait.
    func append(_ command: Command) {
        let isFirst = commands.withLock {
            $0.append(command)
            return $0.count == 1
        }
        if isFirst { loop.wake() }
    }

    /// Removes and returns all commands, in order.
    func removeAll() -> [Command] {
        commands.withLock { commands in
            defer { commands = [] }
            return commands
        }
    }
}
