/// Options of curl, wget and aria2 that a command does not have, with ours.
enum ForeignOptions {
    private static let hints = [
        "-c": continues, "--continue": continues, "-C": continues,
        "-s": connections, "--split": connections, "--max-connection-per-server": connections,
        "-O": name, "--output-document": name, "--remote-name": name, "-P": folder, "--directory-prefix": folder,
        "-k": "--insecure accepts any certificate.", "-L": redirects, "--location": redirects,
        "--max-concurrent-downloads": "the number of files at once is -j N (--jobs).",
    ]

    private static let redirects = "redirects are followed."
    private static let continues = "every download continues from the bytes that are there."
    private static let connections = "the connections for a file are -x N (--connections)."
    private static let name = "the name from the URL is the default, and -o NAME sets another."
    private static let folder = "the folder is -d DIR (--directory)."

    /// The hint for an option, as it was written; nil for an unknown one, and for a command that fetches nothing.
    static func hint(for written: String, of command: [String]) -> String? {
        ["get", "run", "barrel"].contains(command.first) ? hints[written] : nil
    }
}
