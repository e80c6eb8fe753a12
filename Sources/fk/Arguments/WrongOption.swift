import FKMiddleware
import Foundation

/// An option that a command does not have, or one with the value that another program's option of this name takes.
struct WrongOption: Sendable, Hashable {
    var written: String
    /// What to write instead; nil if nothing is known about it.
    var hint: String?
    /// True if the command has an option of this name, which means something else.
    var isOwn = false

    /// One error for all of them; nil for none.
    static func error(_ wrong: [WrongOption], in parsed: ParsedArguments) -> UsageError? {
        let place = parsed.command.isEmpty ? "fk" : "fk \(parsed.command.joined(separator: " "))"
        guard let first = wrong.first else { return nil }
        guard wrong.count > 1 else { return parsed.error(first.sentence(place, isAlone: parsed.command.isEmpty)) }
        var seen: Set<WrongOption> = []
        let rows = wrong.filter { seen.insert($0).inserted }
        let width = rows.map { $0.written.visible.count }.max() ?? 0
        var error = parsed.error("\(place) does not have these options:")
        error.lines = rows.map { option in
            let name = option.written.visible.padding(toLength: width, withPad: " ", startingAt: 0)
            return "  \(name)  \(option.hint ?? "fk has none")"
        }
        return error
    }

    private func sentence(_ place: String, isAlone: Bool) -> String {
        let shown = written.visible
        if isOwn { return "'\(shown)': \(hint ?? "")." }
        guard let hint else {
            return "'\(shown)' is not an option of \(place)."
                + (isAlone ? " Options of a command stand after its name." : "")
        }
        return hint.hasPrefix("did")
            ? "'\(shown)' is not an option of \(place). D\(hint.dropFirst())"
            : "'\(shown)' is not an option of \(place): \(hint)."
    }

    /// The options whose values show that another program's option was meant: a proxy behind `-x`, a cookie behind `-b`, data
    /// behind `-d`. The folder or barrel of such a name may exist; the command looks for a barrel itself.
    static func values(of parsed: ParsedArguments, _ spec: CommandSpec) -> [WrongOption] {
        guard ForeignOptions.isAbout(spec.path) else { return [] }
        var wrong: [WrongOption] = []
        if let value = parsed["connections"], value.contains("://") {
            wrong.append(
                .init(written: "-x URL", hint: "the proxy is --proxy URL; -x is the number of connections", isOwn: true)
            )
        }
        if let value = parsed["directory"], value.contains("="), !value.contains("/"), access(value, F_OK) != 0 {
            wrong.append(.init(written: "-d \(value)", hint: folder, isOwn: true))
        }
        // Alone, it may be the name of a barrel.
        if let value = parsed["barrel"], value.contains("="), !wrong.isEmpty {
            wrong.append(
                .init(
                    written: "-b \(value)",
                    hint: "-b is the barrel of the files; a cookie is -H 'Cookie: NAME=VALUE' or --cookies FILE",
                    isOwn: true))
        }
        if spec.path == ["get"], parsed.has("mirror"), parsed.operands.isEmpty, !parsed.has("input") {
            wrong.append(
                .init(
                    written: "--mirror URL",
                    hint:
                        "it names another address of a file, whose own URL comes first; fk has no mirrors of web pages",
                    isOwn: true))
        }
        return wrong
    }

    private static let folder =
        "-d is the folder for the files, and there is none of this name: fk sends no data; for a new folder write -d ./NAME"
}
