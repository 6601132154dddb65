import ArgumentParser
import WidgetModel

/// Finds the misspelt word of a command line that the parser rejects. The parser names another one
/// where it meets that first, and suggests nothing for commands.
enum CommandHint {
    /// Returns what is misspelt and what may have been meant; `nil` if every command and option is
    /// known. `arguments` follow the name of the program, whose command is `root`.
    static func text(for arguments: [String], of root: any ParsableCommand.Type) -> String? {
        var command = root
        var names: [String] = []
        for (index, argument) in arguments.enumerated() {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !argument.hasPrefix("-") else {
                return unknownOption(in: arguments[index...], of: command)
            }
            guard let next = subcommands.first(where: { name(of: $0) == argument }) else {
                return unknownCommand(argument, after: names, among: subcommands.map(name))
            }
            names.append(argument)
            command = next
        }
        return nil
    }

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    private static func unknownCommand(
        _ argument: String, after names: [String], among known: [String]
    ) -> String? {
        // The parser's own command.
        guard argument != "help" else { return nil }
        // Two letters in the wrong order are too much for a short word otherwise.
        let near =
            argument.nearest(of: known) ?? known.first { $0.sorted() == argument.sorted() }
        let hint = near.map { "; did you mean `\($0)`?" }
        let place = names.isEmpty ? "" : " of `\(names.joined(separator: " "))`"
        return "`\(argument)` is not a command\(place)" + (hint ?? "")
    }

    private static func unknownOption(
        in arguments: ArraySlice<String>, of command: any ParsableCommand.Type
    ) -> String? {
        let help = command.helpMessage(columns: 80)
        let known = Set(
            help.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "-" })
                .filter { $0.hasPrefix("--") }.map(String.init))
        for argument in arguments {
            guard argument != "--" else { return nil }
            let name = String(argument.prefix { $0 != "=" })
            guard name.hasPrefix("--"), !known.contains(name),
                !name.hasPrefix("--generate-completion-script"),
                !name.hasPrefix("--experimental-")
            else { continue }
            let hint = name.nearest(of: known.sorted()).map { "; did you mean `\($0)`?" }
            return "`\(name)` is not an option of the command" + (hint ?? "")
        }
        return nil
    }
}
