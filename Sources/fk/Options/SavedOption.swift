import FKCore

/// An option whose value `fk config` saves. The key is the option's long name.
struct SavedOption: Sendable {
    let name: String
    /// The default, in words where it is no value of the option.
    let usual: String
    /// Reads the value, as the option does. `String` is how errors name it.
    let check: @Sendable (ParsedArguments, String) throws -> Void
    /// The value to save, such as an absolute path for a relative one.
    var stored: @Sendable (String, ParsedArguments, CommandContext) throws -> String = { value, _, _ in value }
    /// True for the path of a file or folder.
    var isPath = false
    /// The value as people may see it.
    var shown: @Sendable (String) -> String = { $0 }

    /// All, in the order of the file.
    static let all = RunOption.all.compactMap(\.saved) + TaskInput.saved

    static func named(_ name: String) -> SavedOption? { all.first { $0.name == name } }

    /// The option that a command line names.
    static func named(_ name: String, _ arguments: ParsedArguments) throws -> SavedOption {
        guard let option = named(name) else { throw arguments.noChoice(name, "key", among: all.map(\.name)) }
        return option
    }

    /// An option with the path of a file or folder.
    static func path(_ name: String, usual: String) -> SavedOption {
        var option = SavedOption(name: name, usual: usual) { arguments, written in
            let value = arguments[name] ?? ""
            guard !value.utf8.contains(where: { $0 < 0x20 }) else {
                throw arguments.error("\(written): control characters are not allowed.")
            }
            guard value.utf8.last != 0x20 else { throw arguments.error("\(written): the path ends in a blank.") }
        }
        option.isPath = true
        option.stored = { try Paths.absolute(Paths.expanded($0, $2.environment["HOME"]), from: $2.workingDirectory) }
        return option
    }

    func check(_ value: String, _ arguments: ParsedArguments) throws {
        var trial = ParsedArguments(command: arguments.command)
        trial.append(value, to: name)
        try check(trial, name)
    }
}
