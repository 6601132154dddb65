import ArgumentParser
import GatewayServer

struct Reference: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print a generated page of the reference documentation.",
        discussion: """
            EXAMPLES
              timeline-gateway reference metrics
              timeline-gateway reference configuration
              timeline-gateway reference limits
            """)

    @Argument(
        help: "Page: \(ReferencePage.allCases.map(\.rawValue).joined(separator: ", ")).")
    var page: ReferencePage

    func run() {
        answer(page.markdown, terminator: "")
    }
}

extension ReferencePage: ExpressibleByArgument {}
