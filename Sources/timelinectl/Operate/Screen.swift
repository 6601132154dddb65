import Foundation
import Synchronization

/// A terminal's whole screen, until it is restored: keys arrive one by one and are not echoed.
final class Screen: Sendable {
    private struct State {
        /// The terminal's previous settings; `nil` once they are restored.
        var before: termios?
        var isOver = false
    }

    private let state = Mutex(State())
    // Sound: kept alive here, and not accessed after `init`.
    nonisolated(unsafe) private let signals: [any DispatchSourceSignal]

    /// Takes over the screen.
    init() {
        // The default actions would leave the terminal in this state.
        let numbers = [SIGINT, SIGTERM, SIGHUP]
        for number in numbers { signal(number, SIG_IGN) }
        signals = numbers.map { DispatchSource.makeSignalSource(signal: $0, queue: .global()) }
        var now = termios()
        if tcgetattr(STDIN_FILENO, &now) == 0 {
            let before = now
            now.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &now)
            state.withLock { $0.before = before }
        }
        for source in signals {
            source.setEventHandler { [weak self] in self?.end() }
            source.resume()
        }
        // The alternate screen buffer, without a cursor.
        write("\u{1B}[?1049h\u{1B}[?25l")
        let thread = Thread { [weak self] in Self.readKeys { self?.end() } }
        thread.start()
    }

    /// Whether someone asked for the end.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Shows lines from the top; the last one says how many do not fit.
    func draw(_ lines: [String]) {
        var size = winsize()
        let hasSize = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 0
        let shown = ScreenLayout(
            rows: hasSize ? Int(size.ws_row) : 24,
            columns: hasSize && size.ws_col > 0 ? Int(size.ws_col) : 80
        ).fit(lines)
        // Clears each line after its end, and the screen below the last line, so that nothing
        // flickers. Lines that are too long end at the edge.
        let text = shown.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
        write("\u{1B}[?7l\u{1B}[H" + text + "\u{1B}[J\u{1B}[?7h")
    }

    /// Restores the terminal. May be called more than once.
    func restore() {
        let before = state.withLock { state in
            state.isOver = true
            return state.before.take()
        }
        guard var before else { return }
        write("\u{1B}[?25h\u{1B}[?1049l")
        tcsetattr(STDIN_FILENO, TCSANOW, &before)
    }

    private func end() { state.withLock { $0.isOver = true } }

    private static func readKeys(_ end: () -> Void) {
        var key: UInt8 = 0
        while read(STDIN_FILENO, &key, 1) == 1 {
            // Control-C arrives as a signal; control-D and escape arrive as keys.
            if [UInt8(ascii: "q"), UInt8(ascii: "Q"), 4].contains(key) { break }
        }
        end()
    }

    private func write(_ text: String) {
        FileHandle.standardOutput.write(Data(text.utf8))
    }
}
