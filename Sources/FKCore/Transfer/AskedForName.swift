import FKMiddleware

/// The rules for a file name that somebody asks for: taken as it is, or refused. Names that servers and URLs give are
/// made safe instead (`FileNameRules.clean`).
package enum AskedForName {
    /// What is wrong with the name; nil for one that can be used.
    ///
    /// Looked at byte by byte: to a `Character` a slash with a combining mark behind it is no slash, to the system it is.
    package static func objection(to name: String) -> String? {
        if !isOneComponent(name) { return "it is not one plain name" }
        if name.unicodeScalars.contains(where: Escaping.isHidden) { return "it holds control or invisible characters" }
        if joinsSlash(name) { return "it begins with a mark that has no letter" }
        if FileNameRules.isOwn(name) { return "names that end so are for unfinished files" }
        return nil
    }

    /// True for a name that begins with a combining mark: behind a slash the two are one character, which is a slash to the
    /// system and none to whoever takes paths apart by characters.
    static func joinsSlash(_ name: String) -> Bool { !name.isEmpty && "/\(name)".first != "/" }

    /// True for what the system takes for a name in a folder and not for a path: 1 to 255 bytes without a slash or zero,
    /// other than `.` and `..`.
    package static func isOneComponent(_ name: String) -> Bool {
        let bytes = name.utf8
        return (1...255).contains(bytes.count) && !bytes.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
            && !bytes.elementsEqual(".".utf8) && !bytes.elementsEqual("..".utf8)
    }
}
