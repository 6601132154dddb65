import ArgumentParser
import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

struct TopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Watch a gateway's status, updated every second.",
        discussion: """
            Redraws the output of `timelinectl status` from the admin port. Quit with q or Ctrl-C. \
            Without a terminal, or with --once, it prints one snapshot and exits; with --json it \
            prints one snapshot per line. NO_COLOR disables colours.

            Examples:
              timelinectl top
              timelinectl top --admin 127.0.0.1:9465 --once
              timelinectl top --json | head -n 60 > minute.jsonl
            """)

    @OptionGroup var options: AdminOptions

    @Flag(help: "Print one snapshot and exit.")
    var once = false

    func run() async throws {
        let admin = try options.connection()
        let screen =
            !once && !options.json && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
            ? Screen() : nil
        let isOver = once || (screen == nil && !options.json)
        let form = options.form
        let view = TopView(admin: admin, screen: screen, form: form)
        do throws(GatewayFailure) {
            if let screen {
                try await Self.follow(admin, view, screen)
            } else {
                try await admin.live { overview in
                    await view.show(overview)
                    return !isOver
                }
            }
            screen?.restore()
        } catch {
            screen?.restore()
            throw Terminal.fail(error, as: form)
        }
    }

    /// Shows every update until someone ends it; continues when the gateway comes back.
    private static func follow(
        _ admin: AdminConnection, _ view: TopView, _ screen: Screen
    ) async throws(GatewayFailure) {
        var hasShown = false
        while !screen.isOver {
            do throws(GatewayFailure) {
                try await admin.live { overview in
                    guard !screen.isOver else { return false }
                    await view.show(overview)
                    hasShown = true
                    return !screen.isOver
                }
            } catch {
                // A failure from the start is a mistake to correct.
                guard hasShown else { throw error }
                screen.draw(["connection to the gateway lost: \(error)"])
            }
            for _ in 0..<10 where !screen.isOver { try? await Task.sleep(for: .milliseconds(100)) }
        }
    }
}

/// The content of the screen, with a cache of the parts that change less often than every second.
private actor TopView {
    /// The number of updates between two requests for apps and keys.
    private static let patience = 10

    private let admin: AdminConnection
    private let screen: Screen?
    private let form: OutputForm
    private var system: SystemStatus?
    private var apps: [AppStatus] = []
    private var age = 0

    init(admin: AdminConnection, screen: Screen?, form: OutputForm) {
        (self.admin, self.screen, self.form) = (admin, screen, form)
    }

    func show(_ document: JSONObject) async {
        if form == .json {
            Terminal.print(JSONValue.object(document).text)
            return
        }
        guard let overview = try? Overview(decoding: .object(document)) else { return }
        if age == 0 {
            if let page = try? await admin.page("/api/system") {
                system = (try? SystemStatus(decoding: .object(page))) ?? system
            }
            if let page = try? await admin.page("/api/apps") {
                apps = (try? AppList(decoding: .object(page)).apps) ?? apps
            }
        }
        age = (age + 1) % Self.patience
        let report = StatusReport(
            overview: overview, system: system, apps: apps, palette: Terminal.palette())
        guard let screen else {
            Terminal.print(report.lines.joined(separator: "\n"))
            return
        }
        let time = TextBlock.line(overview.time)
        screen.draw(["\(admin.place)  \(time)  q to quit", ""] + report.lines)
    }
}
