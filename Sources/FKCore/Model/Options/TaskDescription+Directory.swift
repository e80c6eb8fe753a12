extension TaskDescription {
    /// The reason why no folder can have this path, whatever the current folder; nil if there is none.
    package static func directoryFault(_ path: String) -> String? {
        if path.utf8.contains(0) { return "it holds a zero byte" }
        if path.utf8.first == UInt8(ascii: "/") { return nil }
        if path.isEmpty { return "it is empty; leave it nil to keep the file inside the work path" }
        if path.utf8.first == UInt8(ascii: "~") { return "there is no such user; write ./~ for a folder of that name" }
        if path.hasPrefix("file://") { return "the path of the URL is not UTF-8; a path is written without file://" }
        return path.contains("://") ? "it is not a file URL" : nil
    }
}
