import WidgetModel
import Yams

extension JSONValue {
    /// The maximum number of values that a YAML text may expand to, because aliases can multiply
    /// them.
    static let yamlValuesMax = 200_000

    /// Reads YAML as the equivalent JSON value (the core schema; values with other tags are text).
    ///
    /// - Throws: ``Faults`` with the line and column of a syntax error.
    public init(yaml text: String) throws(Faults) {
        let node: Node?
        do {
            // A byte order mark may precede the document (YAML 1.2 section 5.2).
            let start = text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]
            guard !YAMLGuard.isSuspicious(start) else {
                throw Faults("", "has aliases together with member names that may not be text")
            }
            node = try Yams.compose(yaml: String(start))
        } catch let faults as Faults {
            throw faults
        } catch let error as YamlError {
            throw Faults("", "is not YAML\(Self.reason(of: error))")
        } catch {
            throw Faults("", "is not YAML")
        }
        guard let node else { throw Faults("", "is empty") }
        var budget = Self.yamlValuesMax
        self = try Self.value(of: node, depth: 0, budget: &budget)
    }

    private static func value(
        of node: Node, depth: Int, budget: inout Int
    ) throws(Faults) -> JSONValue {
        budget -= 1
        guard depth < depthMax, budget > 0 else {
            throw Faults("", "is nested too deeply or expands to too many values")
        }
        switch node {
        case .scalar(let scalar):
            return Self.value(of: scalar)
        case .sequence(let sequence):
            var elements: [JSONValue] = []
            for element in sequence {
                elements.append(try value(of: element, depth: depth + 1, budget: &budget))
            }
            return .array(elements)
        case .mapping(let mapping):
            var members: [JSONObject.Member] = []
            var names: Set<String> = []
            for (key, element) in mapping {
                guard case .scalar(let name) = key else {
                    throw Faults("", "has a member name that is not text\(place(of: key))")
                }
                guard names.insert(name.string).inserted else {
                    throw Faults(
                        "", "has the member `\(name.string.forError)` twice\(place(of: key))")
                }
                let value = try value(of: element, depth: depth + 1, budget: &budget)
                members.append(.init(name: name.string, value: value))
            }
            return .object(JSONObject(uniqueMembers: members))
        case .alias:
            throw Faults("", "has an alias to an undefined anchor\(place(of: node))")
        }
    }

    private static func value(of scalar: Node.Scalar) -> JSONValue {
        let text = scalar.string
        guard scalar.style == .plain || scalar.style == .any else { return .string(text) }
        let node = Node.scalar(scalar)
        switch node.tag.description {
        case Tag.Name.null.rawValue: return .null
        case Tag.Name.bool.rawValue:
            // The parser also accepts `yes`, `off` and similar words as booleans, as YAML 1.1 did;
            // in the core schema they are text.
            switch text {
            case "true", "True", "TRUE": return .bool(true)
            case "false", "False", "FALSE": return .bool(false)
            default: return .string(text)
            }
        case Tag.Name.int.rawValue: return Int64(text).map { .integer($0) } ?? .string(text)
        case Tag.Name.float.rawValue:
            return Double(text).flatMap { $0.isFinite ? .number($0) : nil } ?? .string(text)
        default: return .string(text)
        }
    }

    /// Returns the parser's message and position without the surrounding text, which comes from the
    /// sender and may be long.
    private static func reason(of error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            ": \(problem.forError) (line \(mark.line), column \(mark.column))"
        case .reader(let problem, let offset, _, _):
            ": \(problem.forError)\(offset.map { " (byte \($0))" } ?? "")"
        case .duplicatedKeysInMapping(_, let context):
            ": a member name occurs twice (line \(context.mark.line))"
        default:
            ""
        }
    }

    private static func place(of node: Node) -> String {
        node.mark.map { " (line \($0.line), column \($0.column))" } ?? ""
    }
}
