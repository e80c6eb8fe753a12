import Testing

@testable import fk

@Suite("Argument parser") struct ArgumentParserTests {
    private func arguments(_ words: String...) throws -> ParsedArguments { try Self.parse(words) }

    private static func parse(_ words: [String]) throws -> ParsedArguments {
        switch try CommandTable.parser(for: words).parse(words) {
        case .command(_, let parsed), .help(_, let parsed), .version(let parsed): parsed
        }
    }

    private func message(_ words: String...) -> String {
        do {
            _ = try Self.parse(words)
            return ""
        } catch {
            return (error as? UsageError)?.message ?? "\(error)"
        }
    }

    @Test(
        "An option's value is read in every spelling",
        arguments: [
            ["get", "--directory", "x", "http://a"], ["get", "--directory=x", "http://a"],
            ["get", "-d", "x", "http://a"], ["get", "-dx", "http://a"], ["get", "-d=x", "http://a"],
            ["get", "http://a", "-d", "x"], ["get", "-qdx", "http://a"], ["get", "-q", "http://a", "-dx"],
        ])
    func spellings(words: [String]) throws {
        let parsed = try Self.parse(words)
        #expect(parsed["directory"] == "x")
        #expect(parsed.operands == ["http://a"])
    }

    @Test("Flags of one letter combine") func combined() throws {
        let parsed = try arguments("trash", "-qy", "--all")
        #expect(parsed.has("quiet") && parsed.has("yes") && parsed.has("all"))
    }

    @Test("Two dashes end the options") func doubleDash() throws {
        let parsed = try arguments("get", "--", "-d", "--json")
        #expect(parsed.operands == ["-d", "--json"])
        #expect(!parsed.has("json"))
    }

    @Test("A lone dash is a value or an operand") func loneDash() throws {
        #expect(try arguments("get", "-i", "-")["input"] == "-")
        #expect(try arguments("get", "-").operands == ["-"])
    }

    @Test("A value may begin with a dash") func negativeValue() throws {
        #expect(try arguments("get", "-j", "-1", "http://a")["jobs"] == "-1")
    }

    @Test("An empty value is a value") func emptyValue() throws {
        #expect(try arguments("get", "--proxy=", "http://a")["proxy"] == "")
        #expect(try arguments("get", "--proxy", "", "http://a")["proxy"] == "")
        #expect(try arguments("get", "-d=", "http://a")["directory"] == "")
    }

    @Test("Repeated options keep all values, others the last one") func repeated() throws {
        let parsed = try arguments("get", "-H", "A: 1", "--header=B: 2", "-j1", "-j2", "http://a")
        #expect(parsed.all("header") == ["A: 1", "B: 2"])
        #expect(parsed["jobs"] == "2")
    }

    @Test("Common options may stand before and inside a command's name") func globalFirst() throws {
        let parsed = try arguments("--json", "barrel", "-q", "show", "--work-path", "w", "name")
        #expect(parsed.command == ["barrel", "show"])
        #expect(parsed.has("json") && parsed.has("quiet") && parsed["work-path"] == "w")
        #expect(parsed.operands == ["name"])
    }

    @Test(
        "What is nearly a command or an option is suggested",
        arguments: [
            (["gte", "http://a"], "Did you mean 'get'?"), (["barel", "list"], "Did you mean 'barrel'?"),
            (["barrel", "creat", "x"], "Did you mean 'create'?"), (["susp"], "Did you mean 'suspend'?"),
            (["get", "--limit-rat=1", "http://a"], "Did you mean '--limit-rate'?"),
            (["get", "--no-progres", "http://a"], "Did you mean '--no-progress'?"),
            (["get", "--dry-rn", "x", "http://a"], "is not an option of fk get."),
            (["http://a/b"], "Did you mean 'fk get <url>'?"),
            (["list", "-json"], "'-j' is not an option of fk list"),
        ])
    func suggestions(words: [String], expected: String) {
        #expect(throws: UsageError.self) { try Self.parse(words) }
        do { _ = try Self.parse(words) } catch { #expect("\(error)".contains(expected)) }
    }

    @Test("What is far from everything gets no suggestion, and what means something else neither") func noSuggestion() {
        #expect(message("frobnicate") == "'frobnicate' is not a command of fk.")
        for word in ["rename", "move", "unpublish"] {
            let text = message("barrel", word, "x")
            #expect(text.contains("fk has none: ") && !text.contains("mean"), "\(text)")
        }
        #expect(message("unsuspend", "x").contains("Did you mean 'resume'?"))
        #expect(!message("get", "--zzzzzz").contains("mean"))
    }

    @Test("A forgotten value does not swallow the next option") func forgottenValue() {
        #expect(message("get", "-d", "--json", "http://a").hasPrefix("Option -d needs a value, but option --json"))
        #expect(message("get", "http://a", "-d") == "Option -d needs a value: -d DIR.")
        #expect(message("get", "--json=yes", "http://a") == "Option --json takes no value.")
    }

    @Test("Missing and surplus operands are refused") func operands() {
        #expect(message("barrel", "remove", "n") == "<url> is missing: fk barrel remove <name> <url>...")
        #expect(message("info").hasPrefix("<task> is missing"))
        #expect(message("info", "abcdef", "x").hasPrefix("'x' is one argument too many"))
        #expect(message("barrel").contains("needs one of: create, add"))
        #expect(message() == "No command was given.")
    }

    @Test("Options of one group exclude each other") func groups() {
        #expect(message("get", "--skip", "--rename", "http://a") == "--rename and --skip exclude each other.")
    }

    @Test("Control characters of a word are shown escaped") func escaped() {
        #expect(message("\u{1b}[31m") == "'\\e[31m' is not a command of fk.")
    }

    @Test("A surplus URL is shown without its password") func masked() {
        #expect(message("barrel", "show", "n", "https://me:secret@h/p?token=abc").contains("https://***@h/p?token=***"))
    }

    @Test("Help and version are found anywhere they make sense") func helpAndVersion() throws {
        guard case .help(["barrel", "create"], _) = try CommandTable.parser.parse(["barrel", "create", "-h"]),
            case .help(["barrel"], _) = try CommandTable.parser.parse(["barrel", "--help"]),
            case .version = try CommandTable.parser.parse(["--json", "--version"])
        else {
            Issue.record("no help or no version")
            return
        }
    }

    @Test("The table is sound") func table() {
        var names: Set<String> = []
        for spec in CommandTable.all {
            #expect(names.insert(spec.name).inserted, "\(spec.name) twice")
            let options = spec.options + CommandTable.globalOptions
            #expect(Set(options.map(\.long)).count == options.count, "\(spec.name): an option twice")
            let shorts = options.compactMap(\.short)
            #expect(Set(shorts).count == shorts.count, "\(spec.name): a letter twice")
            #expect(spec.operands.dropLast().allSatisfy { $0.maximum == 1 }, "\(spec.name): operands")
            #expect(!spec.summary.hasSuffix("."))
        }
        // The completions rely on it: an option has a value wherever it appears, or nowhere.
        var flags: [String: Bool] = [:]
        for option in CommandTable.all.flatMap(\.options) {
            let isFlag = option.kind == .flag
            #expect(flags.updateValue(isFlag, forKey: option.long) ?? isFlag == isFlag, "\(option.long)")
        }
    }
}

@Suite("Suggestions") struct SuggestionTests {
    @Test(
        "Distance counts single edits",
        arguments: [
            ("", "", 0), ("a", "", 1), ("get", "get", 0), ("gte", "get", 1), ("lst", "list", 1), ("abc", "xyz", 3),
        ])
    func distance(left: String, right: String, expected: Int) {
        #expect(Suggestion.distance(left, right) == expected)
        #expect(Suggestion.distance(right, left) == expected)
    }

    @Test("The nearest wins; nothing near is nothing") func nearest() {
        #expect(Suggestion.nearest(to: "resme", among: ["retry", "resume", "remove"]) == "resume")
        #expect(Suggestion.nearest(to: "x", among: ["list"]) == nil)
        #expect(Suggestion.nearest(to: "sus", among: ["list", "suspend"]) == "suspend")
    }
}
