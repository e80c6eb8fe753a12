/// Parts of a path as text. `NSString` has the same functions, at ten times the cost.
extension String {
    /// The path of the entry with that name in this folder.
    func path(of name: String) -> String {
        var path = self
        path.reserveCapacity(utf8.count + name.utf8.count + 1)
        if utf8.last != UInt8(ascii: "/") { path += "/" }
        path += name
        return path
    }

    /// The text after the last slash.
    package var lastPathPart: String {
        utf8.lastIndex(of: UInt8(ascii: "/")).map { String(self[utf8.index(after: $0)...]) } ?? self
    }

    /// The text before the last slash; `/` for a file in the root folder, empty without a slash.
    package var folderPart: String {
        guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return slash == utf8.startIndex ? "/" : String(self[..<slash])
    }
}
