import FKCore
import FKMiddleware

/// Parses the words of a command line with the table of commands.
///
/// - `--opt=value` and `--opt value`; `-d DIR`, `-dDIR` and `-d=DIR`; one-letter flags combine (`-qy`, `-qj4`).
/// - Options may stand before or after operands. All words after `--` are operands. A single `-` is an operand.
/// - A value may start with a dash (`-i -`, `-j -1`), unless it is a long option of the command. The value was then
///   forgotten, and taking the option for it would hide the mistake.
struct ArgumentParser: Sendable {
    enum Result: Sendable {
        case command(CommandSpec, ParsedArguments)
        /// `-h` was given. The words select the help; they may be empty or a group such as `barrel`.
        case help([String], ParsedArguments)
        case version(ParsedArguments)
    }

    let commands: [CommandSpec]
    let globalOptions: [OptionSpec]

    /// - Parameter words: the arguments without the program's name.
    /// - Throws: `UsageError`.
    func parse(_ words: [String]) throws -> Result {
        var scanner = Scanner(words: words[...], parsed: ParsedArguments(), options: globalOptions)
        var path: [String] = []
        // Until the command is known, only the global options can be parsed.
        while true {
            guard let next = try scanner.nextOperand() else { return try endWithoutCommand(path, scanner.parsed) }
            let word = path.isEmpty ? commands.first { $0.aliases.contains(next) }?.path[0] ?? next : next
            let candidates = commands.filter { $0.path.starts(with: path) && $0.path.count > path.count }
            guard candidates.contains(where: { $0.path[path.count] == word }) else {
                throw unknown(word, after: path, candidates: candidates)
            }
            path.append(word)
            scanner.parsed.command = path
            if let spec = commands.first(where: { $0.path == path }) { return try finish(spec, &scanner) }
        }
    }

    private func finish(_ spec: CommandSpec, _ scanner: inout Scanner) throws -> Result {
        scanner.options = globalOptions + spec.options
        // The options of fk cat are its own, and other programs' habits lead elsewhere there.
        if !["get", "cat", "rpc"].contains(spec.path.first) {
            scanner.optionsOfGet = commands.first { $0.path == ["get"] }?.options ?? []
        }
        scanner.isInCommand = true
        while let word = try scanner.nextOperand() { scanner.parsed.operands.append(word) }
        let parsed = scanner.parsed
        if parsed.has("help") { return .help(spec.path, parsed) }
        if parsed.has("version") { return .version(parsed) }
        if let error = WrongOption.error(scanner.wrong + WrongOption.values(of: parsed, spec), in: parsed) {
            throw error
        }
        try checkOperands(parsed, spec)
        try checkGroups(parsed, spec)
        try checkSingle(parsed, spec)
        return .command(spec, parsed)
    }

    private func endWithoutCommand(_ path: [String], _ parsed: ParsedArguments) throws -> Result {
        if parsed.has("help") { return .help(path, parsed) }
        if parsed.has("version") { return .version(parsed) }
        if path.isEmpty { throw UsageError("No command was given.") }
        let next = Self.unique(commands.filter { $0.path.starts(with: path) }.map { $0.path[path.count] })
        throw UsageError(
            "'fk \(path.joined(separator: " "))' needs one of: \(next.joined(separator: ", ")).", command: path)
    }

    private func unknown(_ word: String, after path: [String], candidates: [CommandSpec]) -> UsageError {
        let shown = word.visible
        let whole = (["fk"] + path).joined(separator: " ")
        let names = Self.unique(candidates.map { $0.path[path.count] })
        let meant = Suggestion.meant(by: word, among: names)
        if !meant.isEmpty {
            let list = meant.map { "'\($0)'" }.joined(separator: " or ")
            return UsageError("'\(shown)' is not a command of \(whole). Did you mean \(list)?", command: path)
        }
        if let lack = Suggestion.lack(of: word) {
            return UsageError("'\(shown)' is not a command of \(whole). \(lack)", command: path)
        }
        if let nearest = Suggestion.nearest(to: word, among: names) {
            return UsageError("'\(shown)' is not a command of \(whole). Did you mean '\(nearest)'?", command: path)
        }
        if path.isEmpty, word.contains("://") {
            return UsageError("A URL is not a command. Did you mean 'fk get <url>'?", command: ["get"])
        }
        return UsageError("'\(shown)' is not a command of \(whole).", command: path)
    }

    private func checkOperands(_ parsed: ParsedArguments, _ spec: CommandSpec) throws {
        let minimum = spec.operands.reduce(0) { $0 + $1.minimum }
        if parsed.operands.count < minimum {
            var given = parsed.operands.count
            for operand in spec.operands {
                if given < operand.minimum { throw parsed.error("<\(operand.name)> is missing: \(spec.usage)") }
                given -= operand.minimum
            }
        }
        guard !spec.operands.contains(where: { $0.maximum == nil }) else { return }
        let maximum = spec.operands.reduce(0) { $0 + ($1.maximum ?? 0) }
        if parsed.operands.count > maximum {
            let surplus = parsed.operands[maximum].masked.visible
            throw parsed.error("'\(surplus)' is one argument too many: \(spec.usage)")
        }
    }

    private func checkGroups(_ parsed: ParsedArguments, _ spec: CommandSpec) throws {
        let given = spec.options.filter { !$0.group.isEmpty && parsed.has($0.long) }
        for (index, option) in given.enumerated() {
            if let other = given[(index + 1)...].first(where: { $0.group == option.group }) {
                throw parsed.error("--\(option.long) and --\(other.long) exclude each other.")
            }
        }
    }

    /// Options whose earlier values would be lost: of a setting the last one counts.
    private func checkSingle(_ parsed: ParsedArguments, _ spec: CommandSpec) throws {
        for option in spec.options where option.kind == .value && Self.singles.contains(option.long) {
            let values = Self.unique(parsed.all(option.long))
            guard values.count > 1 else { continue }
            let shown = values.map { "'\($0.masked.visible)'" }.joined(separator: ", ")
            let advice =
                option.long == "input" ? " To read several lists, join them: cat LIST1 LIST2 | fk get -i -" : ""
            throw parsed.error(
                "\(option.shownName) takes one value, and \(values.count) were given: \(shown).\(advice)")
        }
    }

    private static let singles: Set<String> = ["input", "barrel", "output", "checksum", "signed-by"]

    private static func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}

/// Iterates over the words, collects options and returns operands.
private struct Scanner {
    var words: ArraySlice<String>
    var parsed: ParsedArguments
    var options: [OptionSpec]
    /// The options of `fk get`, for a command that people take for it.
    var optionsOfGet: [OptionSpec] = []
    /// True once the command is known. Its unknown options are collected, so that all of them are answered at once.
    var isInCommand = false
    /// The unknown options of the command, in order.
    private(set) var wrong: [WrongOption] = []
    private var optionsEnded = false
    /// Made for the first unknown option: correct lines do not pay for it.
    private var foreign: ForeignOptions?
    private let line: ArraySlice<String>

    init(words: ArraySlice<String>, parsed: ParsedArguments, options: [OptionSpec]) {
        self.words = words
        self.parsed = parsed
        self.options = options
        line = words
    }

    /// The next word that is neither an option nor its value; nil at the end.
    mutating func nextOperand() throws -> String? {
        while let word = words.popFirst() {
            if optionsEnded || word == "-" || word.utf8.first != UInt8(ascii: "-") { return word }
            if word == "--" {
                optionsEnded = true
            } else if word.utf8.starts(with: "--".utf8) {
                try readLong(Substring(word.utf8.dropFirst(2)))
            } else {
                try readShort(Substring(word.utf8.dropFirst()))
            }
        }
        return nil
    }

    private mutating func readLong(_ word: Substring) throws {
        // Works on bytes: to `String`, an equals sign with a combining mark is another `Character`.
        let parts = word.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        let name = parts[0]
        guard let option = options.first(where: { $0.long == name }) else {
            return try recordUnknown("--\(name)", value: parts.count == 2 ? parts[1] : nil)
        }
        if option.kind == .flag {
            guard parts.count == 1 else { throw parsed.error("Option --\(name) takes no value.") }
            parsed.append("", to: name)
        } else if option.kind == .run, parts.count == 1 {
            let isRun = words.first.map { RunName($0) != nil } ?? false
            parsed.append(isRun ? words.removeFirst() : "", to: name)
        } else if parts.count == 2 {
            parsed.append(parts[1], to: name)
        } else {
            try readNextWord(for: option, written: "--\(name)")
        }
    }

    private mutating func readShort(_ word: Substring) throws {
        // wget has options of two letters: -nc, -np.
        if word.utf8.count == 2, let first = word.first, !options.contains(where: { $0.short == first }),
            find("-\(word)") != nil
        {
            return try recordUnknown("-\(word)", value: nil)
        }
        var rest = word.unicodeScalars
        while let letter = rest.popFirst().map(Character.init) {
            guard let option = options.first(where: { $0.short == letter }) else {
                if let first = word.first, ("0"..."9").contains(first), find("-\(letter)") == nil,
                    !optionsOfGet.contains(where: { $0.short == letter })
                {
                    throw parsed.error("-\(word): a negative number is not allowed.")
                }
                let takesValue = find("-\(letter)")?.takesValue
                let value = takesValue == true && !rest.isEmpty ? String(Substring(rest)) : nil
                try recordUnknown("-\(letter)", value: value)
                if takesValue == false { continue }
                return
            }
            if option.kind == .flag {
                parsed.append("", to: option.long)
                continue
            }
            if rest.first == "=" { rest.removeFirst() }
            if rest.isEmpty, word.utf8.last != UInt8(ascii: "=") {
                try readNextWord(for: option, written: "-\(letter)")
            } else {
                parsed.append(String(Substring(rest)), to: option.long)
            }
            return
        }
    }

    private mutating func readNextWord(for option: OptionSpec, written: String) throws {
        guard let value = words.first else {
            throw parsed.error("Option \(written) needs a value: \(written) \(option.valueName).")
        }
        if value.hasPrefix("--"),
            options.contains(where: { value == "--\($0.long)" || value.hasPrefix("--\($0.long)=") })
        {
            throw parsed.error(
                "Option \(written) needs a value, but option \(value.prefix { $0 != "=" }) follows. "
                    + "For a value that begins with dashes write --\(option.long)=VALUE.")
        }
        words.removeFirst()
        parsed.append(value, to: option.long)
    }

    /// Collects an unknown option, and passes over its value if another program's option takes one.
    ///
    /// - Parameter value: the value in the same word; nil without one.
    private mutating func recordUnknown(_ written: String, value: String?) throws {
        let isOfGet = optionsOfGet.contains { "--\($0.long)" == written || $0.short.map { "-\($0)" } == written }
        let found = find(written)
        let hint =
            isOfGet
            ? "it is an option of fk get"
            : found.map { foreign?.answer($0, value: value ?? words.first, in: parsed.command) ?? "" }
                ?? nearest(to: written)
        let option = WrongOption(written: written, hint: hint)
        guard isInCommand else { throw WrongOption.error([option], in: parsed)! }
        wrong.append(option)
        if found?.takesValue == true, value == nil, let next = words.first, !next.hasPrefix("--"), !next.contains("://")
        {
            words.removeFirst()
        }
    }

    /// The option of another program; nil for a command to which those do not belong.
    private mutating func find(_ written: String) -> ForeignOptions.Option? {
        guard ForeignOptions.isAbout(parsed.command) else { return nil }
        // Short ones mean other things elsewhere, and so tell whose habits they are.
        let own = Set(options.map { "--\($0.long)" })
        let foreign = foreign ?? ForeignOptions(words: line, own: own)
        self.foreign = foreign
        return foreign.find(written)
    }

    /// The option of the command that was mistyped; nil for none.
    private func nearest(to written: String) -> String? {
        let known = options.flatMap { ["--\($0.long)"] + ($0.short.map { ["-\($0)"] } ?? []) }
        if written.hasPrefix("--"),
            let nearest = Suggestion.nearest(to: String(written.dropFirst(2)), among: options.map(\.long))
        {
            return "did you mean '--\(nearest)'?"
        }
        return known.first { $0.dropFirst().lowercased() == written.dropFirst().lowercased() }
            .map { "did you mean '\($0)'?" }
    }
}
