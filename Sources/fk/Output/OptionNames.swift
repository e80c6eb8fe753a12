/// The library's messages name its settings, for it does not know who asks. Here they become the options of the command line:
/// the one place that knows both.
enum OptionNames {
    /// What the library writes, and what stands for it on the command line. Longer texts first.
    static let pairs: [(library: String, option: String)] = [
        (
            "set `existing` to `.overwrite`, `.rename` or `.skip`, or ask for another name",
            "use --overwrite, --rename or --skip, or another name"
        ),
        ("raise `maxSize` to accept it", "raise --max-size to accept it"),
        ("lower `minFree`", "lower --min-free"),
        ("close its downloader, or use another work path", "use another one with --work-path"),
        ("Use the transport over libcurl", "Use --transport curl"),
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
