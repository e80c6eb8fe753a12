/// The words of a command line, sorted into options and operands, but not yet converted to numbers, URLs or paths.
struct ParsedArguments: Sendable, Hashable {
    /// The words of the command: `["barrel", "create"]`.
    var command: [String]
    var operands: [String] = []
    /// The values by long name, in order. A flag has one empty value for each time it was given.
    private var values: [String: [String]] = [:]
    /// The options whose values are saved settings.
    private var saved: Set<String> = []

    init(command: [String] = []) {
        self.command = command
    }

    mutating func append(_ value: String, to option: String) {
        values[option, default: []].append(value)
    }

    /// Adds the saved value of an option that was not given.
    mutating func fill(_ value: String, for option: String) {
        append(value, to: option)
        saved.insert(option)
    }

    /// True if the option has a value that is no saved setting.
    func isGiven(_ option: String) -> Bool { has(option) && !saved.contains(option) }

    /// True if the option was given, or is saved.
    func has(_ option: String) -> Bool { values[option] != nil }

    /// The last value of the option; nil if it was not given.
    subscript(option: String) -> String? { values[option]?.last }

    /// All values of the option, in order.
    func all(_ option: String) -> [String] { values[option] ?? [] }

    /// An error about this command line that refers to the command's help.
    func error(_ message: String) -> UsageError { UsageError(message, command: command) }
}
