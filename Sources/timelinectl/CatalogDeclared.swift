import ArgumentParser
import CatalogModel
import WidgetModel

/// The declarations of an app's extensions, as their programs print them.
struct DeclaredOptions: ParsableArguments {
    @Option(
        name: .customLong("declared"),
        help: ArgumentHelp(
            "Output of an extension with the argument `declarations`; once for each extension.",
            valueName: "file"))
    var files: [String]

    /// The declarations of all files in one document. Throws `ValidationError` if a file is not the
    /// output of a program, or contradicts another one.
    func document() throws -> JSONObject {
        var all: [String: JSONObject] = [:]
        var (widgets, activities): ([JSONValue], [JSONValue]) = ([], [])
        for file in files {
            guard let part = (try? JSONValue(parsing: Terminal.read(file)))?.objectValue else {
                throw ValidationError("--declared: \(file) is not the output of `declarations`")
            }
            for group in ["entities", "intents"] {
                for member in part[group]?.objectValue?.members ?? [] {
                    let other = all[group, default: JSONObject()][member.name]
                    guard other == nil || other == member.value else {
                        throw ValidationError(
                            "--declared: \(file) and a file before it differ in "
                                + "\(group).\(member.name); rename one of them")
                    }
                    all[group, default: JSONObject()][member.name] = member.value
                }
            }
            widgets += part["widgets"]?.arrayValue ?? []
            activities += part["activities"]?.arrayValue ?? []
        }
        return [
            "entities": .object(all["entities"] ?? JSONObject()),
            "intents": .object(all["intents"] ?? JSONObject()), "widgets": .array(widgets),
            "activities": .array(activities),
        ]
    }
}

extension CatalogCommand {
    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Compare a catalog with the declarations in an app's code.",
            discussion: """
                Compares kinds, families, intents, parameters and types of Live Activities, lists \
                every difference with its place in the catalog, and ends with status 1 if there is \
                one. Contacts no gateway: for a build step.

                Examples:
                  MyWidgets declarations > declared.json
                  timelinectl catalog check catalog.yaml --declared declared.json
                """)

        @OptionGroup var declared: DeclaredOptions

        @Flag(help: "Print JSON: the differences as `faults`.")
        var json = false

        @Argument(help: "The catalog, or - for standard input.")
        var file: String

        func run() throws {
            let faults = try differences(of: CatalogFile(bytes: Terminal.read(file))).list
            if json {
                Terminal.print(JSONValue.object(["faults": .array(faults.map(\.json))]).text)
            } else if faults.isEmpty {
                Terminal.print("\(file) agrees with the code")
            }
            guard !faults.isEmpty else { return }
            if !json { faults.forEach { Terminal.complain("\(file): \($0)") } }
            throw ExitStatus.refused
        }

        /// - Throws: `ValidationError` if extensions declare what no catalog can hold together.
        func differences(of file: CatalogFile) throws -> Faults {
            var declarations = try declared.document()
            declarations["app"] = file.value.objectValue?["app"]
            // Only the catalog says where the content of an activity comes from.
            let content: JSONValue = ["content": ["url": "https://unknown"]]
            declarations["activities"] = .array(
                (declarations["activities"]?.arrayValue ?? []).map { $0.merging(patch: content) })
            let catalog: Catalog
            do throws(Faults) {
                catalog = try Catalog(file.value, app: nil, limits: Limits())
            } catch {
                return error
            }
            do throws(Faults) {
                return catalog.differences(
                    from: try Catalog(.object(declarations), app: nil, limits: Limits()))
            } catch {
                throw ValidationError("the declared \(error)")
            }
        }
    }

    struct Write: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "write",
            abstract: "Print a catalog with the declarations in an app's code.",
            discussion: """
                Takes kinds, families, intents and parameters from the code and everything else, \
                such as rules, from the catalog. A new kind gets no rules, and a new type of Live \
                Activities no source of content: add them. Prints JSON, which is YAML too, and \
                changes no file.

                Examples:
                  timelinectl catalog write --declared declared.json --app com.mygame
                  timelinectl catalog write --declared declared.json old.yaml > catalog.json
                """)

        @OptionGroup var declared: DeclaredOptions
        @OptionGroup var app: AppOption

        @Argument(help: "The catalog as it is; none for a new one.")
        var file: String?

        func run() throws {
            let existing = try file.map { try CatalogFile(bytes: Terminal.read($0)).value }
            let document: JSONValue = try existing ?? ["app": .string(app.required())]
            let declarations = try JSONValue.object(declared.document())
            Terminal.print(Catalog.document(document, declaring: declarations).indented())
        }
    }
}
