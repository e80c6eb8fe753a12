import Testing

@testable import fk

@Suite("Options of curl, wget and aria2") struct ForeignOptionTests {
    /// A command line of another program's habits, and what the answer contains, a text for each option.
    struct Row: Sendable, CustomTestStringConvertible {
        var line: String
        var says: [String]
        var testDescription: String { line }

        init(_ line: String, _ says: String...) { (self.line, self.says) = (line, says) }
    }

    static let rows: [Row] = [
        Row("-sSLO U", "-s  -q", "-S  errors", "-L  redirects", "-O  the name from the URL"),
        Row("-x16 -s16 -k1M U", "-s  the connections", "-k  each connection has at least 1 MiB"),
        Row("-k -L U", "-k  --insecure", "-L  redirects"), Row("-s 16 U", "-x N"), Row("-s U", "-q"),
        Row("-c U", "the same command continues", "--adopt FILE continues another program's"),
        Row("-C - U", "the same command continues"),
        Row("--continue U", "the same command continues"), Row("-x socks5h://h:1 U", "--proxy URL"),
        Row("-x socks5h://h:1 -b a=b U", "a cookie is -H"),
        Row("-x http://h:1 U", "--proxy URL"), Row("-d a=b U", "fk sends no data"), Row("-A X U", "--user-agent"),
        Row("-U X --tries 2 U", "-U       --user-agent", "--tries  --retry"), Row("-u a:b U", "--user NAME"),
        Row("-e X U", "Referer"), Row("--referer X U", "Referer"), Row("--load-cookies F U", "--cookies FILE"),
        Row("-T 3 -nc U", "-T   --timeout", "-nc  --skip"), Row("--connect-timeout 3 U", "--timeout"),
        Row("--tries 3 U", "--retry"), Row("--max-tries=3 U", "--retry"), Row("-t 3 -np U", "-t   --retry"),
        Row("--no-check-certificate U", "--insecure"), Row("--ca-certificate F U", "--cacert"),
        Row("--all-proxy P U", "--proxy"), Row("--max-download-limit 1M U", "--limit-rate"),
        Row("--input-file F", "-i FILE"), Row("--output-dir D U", "-d DIR"), Row("--daemon U", "--detach"),
        Row("-l LOG U", "--log FILE"),
        Row("--split 2 --max-tries 3 U", "--split      the connections"),
        Row("-I U", "curl -I"), Row("--head U", "curl -I"),
        Row("-X POST U", "fk sends no data"), Row("-J U", "the name from the URL or the server"),
        Row("--content-disposition U", "the name from the URL or the server"), Row("-D f U", "fk has none"),
        Row("-Q f U", "fk has none"), Row("-Q 10m U", "--max-size SIZE"), Row("-t 3 U", "--retry"),
        Row("-T 5 U", "--timeout"), Row("-U X -q U", "--user-agent"), Row("-U a:b -q U", "part of --proxy"),
        Row("-nc -np U", "-nc  --skip", "-np  -r never leaves the folder"),
        Row("--create-dirs U", "folders are created"), Row("--retry-all-errors U", "transient errors"),
        Row("-N U", "fk barrel refresh"), Row("-sN U", "-N  fk has none"), Row("--compressed U", "always so for lists"),
        Row("-N --timestamping U", "fk barrel refresh"), Row("-z d U", "fk barrel refresh"),
        Row("-r -l 2 -A *.fits U", "-l  --depth N", "-A  --include GLOB"),
        Row("-m --no-parent U", "fk barrel sync NAME", "-r never leaves the folder"),
        Row("--spider U", "curl -I"), Row("--post-data x U", "fk sends no data"), Row("--data x U", "fk sends no data"),
        Row("-w f U", "--json prints events"), Row("-K f", "-i FILE"),
        Row("--on-download-complete p U", "middleware program"),
        Row("-y 3 -Y 3 U", "-y  --timeout", "-Y  --timeout"), Row("-O - -q U", "fk cat URL"),
        Row("-O out U", "-o NAME"),
        Row("--mirror U", "another address of a file"), Row("-Z U", "-j N"), Row("--bt-max-peers=3 U", "BitTorrent"),
        Row("-P dir U", "-d DIR"), Row("-n U", "--netrc"), Row("-qO- U", "fk cat URL"),
        Row("--resume U", "the same command"), Row("-B http://h/ U", "--base URL"),
        Row("-M list U", "-i FILE reads a Metalink"),
        Row("--retries 3 U", "--retry"), Row("--bwlimit 1M U", "--limit-rate"), Row("--transfers 4 U", "-j N"),
        Row("--nonsense --moresense U", "--nonsense", "--moresense"),
    ]

    @Test("Each option of a line is answered, by the program whose habits the line shows", arguments: rows)
    func answered(_ row: Row) throws {
        let words =
            ["get"]
            + row.line.replacing("U", with: "http://h/a", maxReplacements: row.line.hasPrefix("-U") ? 0 : 9)
            .split(separator: " ").map(String.init)
        let error = try #require(throws: UsageError.self) { try CommandTable.parser.parse(words) }
        let text = ([error.message] + error.lines).joined(separator: "\n")
        for part in row.says { #expect(text.contains(part), "\(text)") }
    }

    @Test("aria2's options of its RPC lead to those of fk rpc, and an option of fk get is named by other commands")
    func otherCommands() throws {
        for (line, says) in [
            ("rpc --rpc-secret x", "--secret-file"), ("rpc --rpc-listen-port 1 --rpc-allow-origin-all", "--listen"),
            ("rpc --rpc-listen-port 1 --rpc-allow-origin-all", "--allow-origin"),
            ("verify --all --limit-rate 1M", "it is an option of fk get"),
        ] {
            let error = try #require(throws: UsageError.self) {
                try CommandTable.parser.parse(line.split(separator: " ").map(String.init))
            }
            let text = ([error.message] + error.lines).joined(separator: "\n")
            #expect(text.contains(says) && !text.contains("fk has none"), "\(line): \(text)")
        }
    }

    @Test("No option of another program is taken for a mistyped one of ours, and each has an answer")
    func all() throws {
        for (program, names) in [
            ("curl", ForeignNames.curl), ("wget", ForeignNames.wget), ("aria2", ForeignNames.aria2),
            ("rclone", ForeignNames.rclone),
        ] {
            for word in names.split(whereSeparator: \.isWhitespace) {
                let name = "--" + word.prefix { $0 != "," && $0 != "=" }
                let words = ["get", name] + (word.hasSuffix("=") ? ["1"] : []) + ["http://h/a"]
                do { _ = try CommandTable.parser.parse(words) } catch let error as UsageError {
                    let isOurs = TransferCommands.get.options.contains { "--\($0.long)" == name }
                    #expect(isOurs || !error.message.contains("Did you mean"), "\(program) \(name): \(error.message)")
                    #expect(isOurs || error.message.contains(": "), "\(program) \(name): \(error.message)")
                }
            }
        }
    }

    @Test("A barrel, or a folder behind a path, may have an equals sign in its name")
    func equalsSigns() throws {
        _ = try CommandTable.parser.parse(["get", "-d", "./run=5", "http://h/a"])
        _ = try CommandTable.parser.parse(["get", "-b", "run=5", "http://h/a"])
    }

    @Test("Correct lines, and commands that download nothing, ask nobody")
    func others() throws {
        _ = try CommandTable.parser.parse(["get", "-j", "2", "-x", "4", "http://h/a"])
        let error = try #require(throws: UsageError.self) { try CommandTable.parser.parse(["list", "-O"]) }
        #expect(error.message == "'-O' is not an option of fk list.")
    }
}
