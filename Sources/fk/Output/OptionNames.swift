/// Replaces the library's settings in its messages by the options of the command line. The library does not know its
/// caller, so this is the only place that knows both.
enum OptionNames {
    /// The library's text and the option that replaces it. Longer texts come first.
    static let pairs: [(library: String, option: String)] = [
        (
            "set `existing` to `.overwrite`, `.rename` or `.skip`, or ask for another name",
            "use --overwrite, --rename or --skip, or another name"
        ),
        (
            "set `existing` to `.overwrite` or `.rename`, or ask for another name",
            "use --overwrite or --rename, or another name"
        ),
        ("raise `maxSize` to accept it", "raise --max-size to accept it"),
        ("lower `minFree`", "lower --min-free"),
        ("close its downloader, or use another work path", "use another one with --work-path"),
        ("Use the transport over libcurl", "Use --transport curl"),
        ("it wants a login", "it wants a login (--user or --netrc)"),
        ("the proxy wants a login", "the proxy wants a login (--proxy http://NAME:PASSWORD@HOST:PORT)"),
        ("(pinnedPublicKey)", "(--pinnedpubkey)"),
        ("(caFile)", "(--cacert)"), ("(insecure)", "(--insecure)"), ("(proxy)", "(--proxy)"), ("(netrc)", "(--netrc)"),
    ]

    static func inCommandLine(_ message: String) -> String {
        var text = message
        for pair in pairs where text.contains(pair.library) {
            text = text.replacing(pair.library, with: pair.option)
        }
        return text
    }
}
