import Foundation

/// Command lines that are refused, with the exit status and the words that the message has to contain. `@` stands for the
/// folder that the program is started in.
///
/// The folder has `list.txt` (a bad list), `empty.txt` and `plain.txt` (no list, no certificate).
enum WrongCommandLines {
    struct Row: Sendable, CustomStringConvertible {
        var words: [String]
        var status: Int32
        var says: [String]
        var description: String { "fk \(words.joined(separator: " "))" }

        init(_ line: String, _ status: Int32, _ says: String...) {
            words = line.split(separator: " ").map(String.init)
            self.status = status
            self.says = says
        }

        init(words: [String], _ status: Int32, _ says: String...) {
            self.words = words
            self.status = status
            self.says = says
        }
    }

    private static let file = "http://h.invalid/a"

    static let rows: [Row] =
        commands + urls + options + numbers + lists + names + barrels + verbs + tools + runs + workPaths

    private static let commands: [Row] = [
        Row(words: [], 2, "No command was given"),
        Row("gte \(file)", 2, "'gte'", "Did you mean 'get'?"),
        Row("delete \(file)", 2, "'delete'", "'forget' or 'trash'"),
        Row("download \(file)", 2, "'download'", "Did you mean 'get'?"),
        Row("frobnicate", 2, "'frobnicate' is not a command of fk"),
        Row("\(file)", 2, "A URL is not a command", "fk get <url>"),
        Row("limit -5", 2, "-5: a negative number is not allowed"),
        Row("config set retry -1", 2, "-1: a negative number is not allowed"),
        Row("barrel", 2, "'fk barrel' needs one of: create, add"),
        Row("barrel shwo x", 2, "'shwo'", "Did you mean 'show'?"),
        Row("barrel rm x", 2, "'rm'", "'forget' or 'remove'"),
        Row("config", 2, "'fk config' needs one of: show, get, set, unset, path"),
        Row(words: [""], 2, "'' is not a command"),
        Row(words: ["\u{1b}[31m"], 2, "'\\e[31m' is not a command"),
        Row("help nosuch", 2, "There is no command 'nosuch'"),
        Row("--jsn list", 2, "'--jsn'", "Did you mean '--json'?"),
        Row("-j 4 get \(file)", 2, "'-j' is not an option of fk", "after its name"),
    ]

    private static let urls: [Row] = [
        Row("get", 2, "<url> is missing", "-i FILE"),
        Row("get host/file", 2, "Not a URL to download", "host/file"),
        Row("get @", 2, "is a folder here and no URL", "-d @"),
        Row("get -i a.txt --input b.txt", 2, "-i takes one value, and 2 were given: 'a.txt', 'b.txt'", "cat LIST1"),
        Row("barrel create b gh:o/r", 2, "gh:o/r is the name of a source and no URL", "fk barrel import b gh:o/r"),
        Row("barrel add b s3://b/k", 2, "s3://b/k is the name of a source and no URL", "fk get -b b s3://b/k"),
        Row("get -b x1 -b x2 \(file)", 2, "-b takes one value"),
        Row("get -o /usr/bin \(file)", 2, "/usr/bin is a folder: -d /usr/bin"),
        Row("get ftp://h/a", 2, "URL", "ftp"),
        Row("get file:///etc/passwd", 2, "URL", "file"),
        Row("get http://", 2, "URL"),
        Row("get http://h:0/a", 2, "http://h:0/a"),
        Row("get http://h:99999/a", 2, "http://h:99999/a"),
        Row("get http://[::1/a", 2, "http://[::1/a"),
        Row(words: ["get", "http://a\nb/"], 2, "URL"),
        Row("get \(file) nonsense", 2, "nonsense"),
        Row("get \(file) --mirror nonsense", 2, "--mirror", "nonsense"),
        Row("relink \(file) nonsense", 2, "Not a URL to download", "nonsense"),
        Row("relink \(file)", 2, "<new-url> is missing"),
    ]

    private static let options: [Row] = [
        Row("get --jbs 2 \(file)", 2, "'--jbs'", "Did you mean '--jobs'?"),
        Row("get -D x \(file)", 2, "'-D'", "fk has none"),
        Row("get -Y x \(file)", 2, "'-Y'", "--timeout S"),
        Row("get \(file) -d", 2, "Option -d needs a value: -d DIR"),
        Row("get -d --json \(file)", 2, "Option -d needs a value, but option --json follows"),
        Row(words: ["get", "-d", "", file], 2, "-d: the folder's name is empty"),
        Row("get --json=yes \(file)", 2, "Option --json takes no value"),
        Row("get --skip --rename \(file)", 2, "--rename and --skip exclude each other"),
        Row("get --color purple \(file)", 2, "--color", "'purple'", "auto, always, never"),
        Row("get --durability magic \(file)", 2, "--durability", "'magic'", "process, power"),
        Row("get --transport pigeon \(file)", 2, "--transport", "'pigeon'"),
        Row(words: ["get", "-H", "no colon", file], 2, "-H", "'Name: value'"),
        Row(words: ["get", "-H", "A B: c", file], 2, "-H", "a header's name"),
        Row(words: ["get", "-H", "Range: bytes=1-", file], 2, "-H", "'Range'"),
        Row(words: ["get", "-H", "X-A: 1\nX-B: 2", file], 2, "-H", "'X-A'", "line break"),
        Row("get --proxy gopher://p:1 \(file)", 2, "--proxy", "gopher"),
        Row("get --cacert @/nothing.pem \(file)", 2, "--cacert", "@/nothing.pem", "No such file"),
        Row("get --cacert @/plain.txt \(file)", 2, "--cacert", "@/plain.txt", "no certificate"),
        Row("get --cookies @/nothing.txt \(file)", 2, "--cookies", "@/nothing.txt", "No such file"),
        Row("get --cookies @/plain.txt \(file)", 2, "--cookies", "@/plain.txt", "Netscape"),
        Row("get --pinnedpubkey key.pem \(file)", 2, "--pinnedpubkey", "key.pem", "sha256//BASE64"),
        Row("get --attribute nonsense \(file)", 2, "--attribute", "'nonsense'", "NAME=VALUE"),
        Row("get --checksum sha-256=zz \(file)", 2, "--checksum"),
        Row("get --checksum crc=00 \(file)", 2, "--checksum"),
        Row("get -o a \(file) \(file)2", 2, "-o describes a single file, but 2 URLs were given"),
    ]

    private static let numbers: [Row] = [
        Row("get -j 0 \(file)", 2, "-j", "'0'", "1 to 256"),
        Row("get -j 257 \(file)", 2, "-j", "'257'"),
        Row("get -j many \(file)", 2, "-j", "'many'"),
        Row("get -x 0 \(file)", 2, "-x", "'0'", "auto"),
        Row("get --retry -1 \(file)", 2, "--retry", "'-1'", "0 to 1000"),
        Row("get --timeout 0 \(file)", 2, "--timeout", "'0'", "seconds"),
        Row("get --timeout soon \(file)", 2, "--timeout", "'soon'"),
        Row("get --limit-rate fast \(file)", 2, "--limit-rate", "'fast'", "500K"),
        Row("get --max-size 0 \(file)", 2, "--max-size", "'0'"),
        Row("get --max-size 1X \(file)", 2, "--max-size", "'1X'"),
        Row("get --min-free -1 \(file)", 2, "--min-free", "'-1'"),
        Row("get --per-host 0 \(file)", 2, "--per-host", "'0'", "1 to 256"),
        Row("get --rate 3 \(file)", 2, "--rate", "'3'", "20/m"),
        Row("get --rate 0/s \(file)", 2, "--rate", "'0/s'"),
        Row("get --contact nobody \(file)", 2, "--contact", "'nobody'", "mail address"),
        Row("config host http://a --rate 3/s", 2, "'http://a'", "no host"),
        Row("config host a:80 --rate 3/s", 2, "'a:80'", "port"),
        Row("config host --rate 3/s", 2, "--rate needs a pattern"),
        Row("config host a --rate 3/d", 2, "--rate", "'3/d'"),
        Row("config host a --remove --rate 3/s", 2, "--remove and --rate"),
        Row("config host a --remove", 4, "no policy for a"),
        Row("limit fast", 2, "RATE", "'fast'"),
        Row("list --limit 0", 2, "--limit", "'0'"),
        Row("list --min-size 2M --max-size 1M", 2, "--min-size", "--max-size"),
        Row("list --since yesterday", 2, "--since", "'yesterday'"),
        Row("list --state finished", 2, "--state", "'finished'"),
        Row("list --sort colour", 2, "--sort", "'colour'"),
    ]

    private static let lists: [Row] = [
        Row("get -i @/nothing.txt", 2, "@/nothing.txt", "No such file"),
        Row("get -i @", 2, "@", "bagit.txt is missing"),
        Row("get -i @/empty.txt", 2, "@/empty.txt", "empty"),
        Row("get -i @/list.txt", 2, "@/list.txt:2", "nonsense"),
        Row("barrel create b -i @/list.txt", 2, "@/list.txt:2"),
        Row("barrel import b @/empty.txt", 2, "@/empty.txt", "empty"),
        Row("barrel add b", 2, "<url> is missing"),
    ]

    private static let names: [Row] = [
        Row("get -o .. \(file)", 2, "-o", "'..'"),
        Row("get -o x/ \(file)", 2, "-o", "'x/'"),
        Row(words: ["get", "-o", String(repeating: "n", count: 300), file], 2, "-o", "255 bytes"),
        Row("info x", 4, "work path"),
        Row("info \(file)", 4, "work path"),
        Row("info", 2, "<task> is missing"),
        Row("why abcdef", 4, "work path"),
        Row("set \(file) owner", 2, "'owner' is not NAME=VALUE"),
    ]

    private static let barrels: [Row] = [
        Row("barrel create a/b", 2, "\"a/b\" cannot be a barrel's name"),
        Row("barrel create ..", 2, "\"..\" cannot be a barrel's name"),
        Row("barrel show nix", 4, "work path"),
        Row("barrel show", 2, "<name> is missing"),
        Row("barrel show a b", 2, "'b' is one argument too many"),
        Row("barrel export b --format xml", 2, "--format", "'xml'"),
        Row("get -b a/b \(file)", 2, "\"a/b\" cannot be a barrel's name"),
    ]

    private static let verbs: [Row] = [
        Row("suspend", 2, "<task> is missing", "--all"),
        Row("suspend --all \(file)", 2, "tasks or --all, not both"),
        Row("forget -b x --state error", 2, "-b or --state, not both"),
        Row("forget --state gone", 2, "--state", "'gone'"),
        Row("cancel 12", 4, "work path"),
        Row("trash", 2, "<task> is missing"),
    ]

    private static let tools: [Row] = [
        Row("config set speed 4", 2, "'speed'", "jobs, connections"),
        Row("config set jobs 0", 2, "jobs", "'0'"),
        Row("config set jobs", 2, "<value> is missing"),
        Row("completions tcsh", 2, "'tcsh'", "bash, zsh, fish"),
        Row("metrics x", 2, "'x' is one argument too many"),
        Row("demo -j 0", 2, "-j", "'0'"),
    ]

    private static let runs: [Row] = [
        Row("get --at noon \(file)", 2, "--at", "'noon'", "18:30"),
        Row("get --at 25:00 \(file)", 2, "--at", "'25:00'"),
        Row("get --at 2020-01-01 \(file)", 2, "--at", "in the past"),
        Row("get --at 2026-02-30T10:00 \(file)", 2, "--at", "'2026-02-30T10:00'"),
        Row("run --at +900d", 2, "--at", "more than a year"),
        Row("get --log @/no/such/log \(file)", 2, "--log", "@/no/such/log", "No such file"),
        Row("get --log @ \(file)", 2, "--log", "@", "directory"),
        Row("get --log-level info \(file)", 2, "--log-level", "Give --log FILE"),
        Row("get --log @/log --log-level loud \(file)", 2, "--log-level", "'loud'", "error, warn, info, debug"),
        Row("get --user :secret \(file)", 2, "--user", "the name is empty"),
        Row(words: ["get", "--user", "me:a\nb", file], 2, "--user", "control characters"),
        Row(words: ["get", "--user", "me:x", "-H", "Authorization: y", file], 2, "--user", "exclude each other"),
        Row(words: ["get", "--user-agent", "a\rb", file], 2, "--user-agent", "line break"),
        Row(words: ["get", "--user-agent", "a", "-H", "User-Agent: b", file], 2, "--user-agent", "exclude"),
    ]

    private static let workPaths: [Row] = [
        Row(words: ["list", "--work-path", ""], 2, "--work-path: the folder's name is empty"),
        Row("list --work-path @/plain.txt", 3, "@/plain.txt"),
        Row("get --work-path @/plain.txt/sub \(file)", 3, "@/plain.txt"),
    ]
}
