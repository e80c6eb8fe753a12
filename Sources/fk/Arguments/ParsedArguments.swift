/// The words of a command line, sorted into options and operands but not yet read as numbers, URLs or paths.
struct ParsedArguments: Sendable, Hashable {
    /// The command's words: `["barrel", "create"]`.
    var command: [String]
    var operands: [String] = []
    /// Values by long name, in order; a flag has one empty value each time it was given.
    private var values: [String: [String]] = [:]

    init(command: [String] = []) {
        self.command = command
    }

    mutating func append(_ value: String, to option: String) {
        values[option, default: []].append(value)
    }

    /// True when the option was given at all.
    func has(_ option: String) -> Bool { values[option] != nil }

    /// The last value given, or nil.
    subscript(option: String) -> String? { values[option]?.last }

    /// All values given, in order.
    func all(_ option: String) -> [String] { values[option] ?? [] }

    /// An error about this command line that points at the command's help.
    func error(_ message: String) -> UsageError { UsageError(message, command: command) }
}
