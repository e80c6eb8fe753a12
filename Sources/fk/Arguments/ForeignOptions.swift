import FKMiddleware

/// Options of curl, wget, aria2 and rclone that a command does not have. Each has an answer: ours, "always so", or that fk has none.
///
/// One letter means different things to them: `-s` is curl's `--silent`, and aria2's `--split`. The other options of the command
/// line tell whose the line is; without one, curl comes before aria2 and wget.
struct ForeignOptions: Sendable {
    enum Program: String, Sendable, CaseIterable {
        case curl, aria2, wget, rclone
    }

    struct Option: Sendable, Hashable {
        var program: Program
        var long: String
        var takesValue: Bool
    }

    /// The programs, the likeliest first.
    private let order: [Program]

    /// - Parameters:
    ///   - words: the command line. It tells whose habits these are.
    ///   - own: the options of the command, as they are written, which tell nothing.
    init(words: ArraySlice<String>, own: Set<String> = []) {
        var counts: [Program: Int] = [:]
        let words = Array(words.prefix { $0 != "--" })
        for (index, word) in words.enumerated() where word.utf8.first == UInt8(ascii: "-") && word.utf8.count > 1 {
            if own.contains(String(word.prefix { $0 != "=" })) { continue }
            let next = index + 1 < words.count ? words[index + 1] : nil
            if let program = Self.program(of: word, next: next) { counts[program, default: 0] += 1 }
        }
        order = Program.allCases.enumerated().sorted {
            (-(counts[$0.element] ?? 0), $0.offset) < (-(counts[$1.element] ?? 0), $1.offset)
        }.map(\.element)
    }

    /// Finds an option as it was written: `--name`, `-n`, or wget's `-nc`; nil for a word that no other program has either.
    func find(_ written: String) -> Option? {
        let options = Self.table[written] ?? []
        return order.lazy.compactMap { program in options.first { $0.program == program } }.first
    }

    /// What fk does in place of the option.
    ///
    /// - Parameter value: the value or the next word; nil at the end of the line.
    func answer(_ option: Option, value: String?, in command: [String]) -> String {
        if option.takesValue, value == "-", ["output-document", "out", "output"].contains(option.long) {
            return command == ["cat"] ? ForeignAnswers.always : ForeignAnswers.cat
        }
        if command == ["cat"], let answer = ForeignAnswers.ofCat[option.long] { return answer }
        if command == ["rpc"], let answer = ForeignAnswers.ofRPC[option.long] { return answer }
        return ForeignAnswers.special["\(option.program):\(option.long)"] ?? ForeignAnswers.common[option.long]
            ?? ForeignAnswers.none(of: option.long)
    }

    /// True for the commands that download, to which the options of other programs belong.
    static func isAbout(_ command: [String]) -> Bool {
        ["get", "cat", "run", "barrel", "rpc"].contains(command.first)
    }

    /// The only program that has this word, or the one that the form of its value points to.
    private static func program(of word: String, next: String?) -> Program? {
        if word.hasPrefix("--") {
            let name = String(word.prefix { $0 != "=" })
            let programs = Set((table[name] ?? []).map(\.program))
            return programs.count == 1 ? programs.first : nil
        }
        if word.utf8.count == 3, let option = table[word]?.first { return option.program }
        if word.hasSuffix("O-") { return .wget }
        let letter = String(word.prefix(2))
        let value = word.utf8.count > 2 ? String(word.dropFirst(2)) : next ?? ""
        switch letter {
        case "-s", "-k": return value.first?.isASCII == true && value.first?.isNumber == true ? .aria2 : .curl
        case "-O": return isNoValue(value) ? .curl : .wget
        case "-c": return isNoValue(value) ? .aria2 : .curl
        case "-r": return value.first.map { $0 == "-" || $0.isNumber } ?? false && value.contains("-") ? .curl : .wget
        case "-m": return value.first?.isNumber == true ? .curl : .wget
        // wget's depth, or aria2's log; curl's has no value.
        case "-l" where !isNoValue(value): return value.first?.isNumber == true ? .wget : .aria2
        case "-A" where value.contains("*") || value.hasPrefix("."): return .wget
        case "-U": return value.contains(":") ? .curl : .wget
        // curl's port of FTP, or rclone's progress, which has no value.
        case "-P" where !isNoValue(value) && !value.contains(":"): return .wget
        case "-T", "-t", "-Q": return value.first?.isNumber == true ? .wget : nil
        case "-N" where word == "-N": return .wget
        case "-x": return value.contains("://") ? .curl : nil
        // wget's base, or aria2's Metalink; curl's have no value.
        case "-B" where value.contains("://"): return .wget
        case "-M" where !isNoValue(value): return .aria2
        default: break
        }
        let programs = Set((table[letter] ?? []).map(\.program))
        return programs.count == 1 ? programs.first : nil
    }

    /// True for a URL or an option behind an option: it has no value.
    private static func isNoValue(_ word: String) -> Bool {
        word.isEmpty || word.contains("://") || word.hasPrefix("-") && word != "-"
    }

    /// The options by the way they are written.
    private static let table: [String: [Option]] = {
        var table: [String: [Option]] = [:]
        for (program, names) in [
            (Program.curl, ForeignNames.curl), (.aria2, ForeignNames.aria2), (.wget, ForeignNames.wget),
            (.rclone, ForeignNames.rclone),
        ] {
            for word in names.split(whereSeparator: \.isWhitespace) {
                let takesValue = word.hasSuffix("=")
                let parts = word.prefix { $0 != "=" }.split(separator: ",", maxSplits: 1)
                let option = Option(program: program, long: String(parts[0]), takesValue: takesValue)
                table["--\(parts[0])", default: []].append(option)
                if parts.count == 2 { table["-\(parts[1])", default: []].append(option) }
            }
        }
        return table
    }()
}
