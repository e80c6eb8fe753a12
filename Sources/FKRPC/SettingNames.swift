import FKMiddleware

/// Replaces the library's settings in its messages by what a person at the page or at another client can change.
enum SettingNames {
    /// The library's text and the words that replace it. Longer texts come first.
    static let pairs: [(library: String, words: String)] = [
        (
            "set `existing` to `.overwrite`, `.rename` or `.skip`, or ask for another name",
            "move that file away, or add the download again with another name"
        ),
        (
            "set `existing` to `.overwrite` or `.rename`, or ask for another name",
            "move that file away, or add the download again with another name"
        ),
        ("raise `maxSize` to accept it", "fetch it with 'fk get --max-size' to accept it"),
        ("lower `minFree`", "start fk rpc with a lower --min-free"),
        ("close its downloader, or use another work path", "end it, or start fk rpc with another --work-path"),
        ("Use the transport over libcurl", "Start fk rpc with --transport curl"),
        ("it wants a login", "it wants a login (options http-user and http-passwd)"),
        ("the proxy wants a login", "the proxy wants a login (option all-proxy)"),
        ("(pinnedPublicKey)", "('fk get --pinnedpubkey')"),
        ("(caFile)", "('fk get --cacert')"), ("(insecure)", "('fk get --insecure')"),
        ("(proxy)", "(option all-proxy)"), ("(netrc)", "('fk get --netrc')"),
    ]

    static func inRPC(_ message: String) -> String {
        var text = message
        for pair in pairs where text.contains(pair.library) {
            text = text.replacing(pair.library, with: pair.words)
        }
        return text
    }

    static func inRPC(_ error: DownloadError) -> DownloadError {
        var error = error
        error.message = inRPC(error.message)
        error.underlying = error.underlying.map(inRPC)
        return error
    }
}
