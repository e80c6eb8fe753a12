import FKMiddleware

extension FileNameRules {
    /// The problem with a file name that the user or application sets, which is used unchanged or refused; nil if it can be used.
    ///
    /// It works on bytes: to `String`, a slash with a combining mark is another `Character`, but the system sees a
    /// slash.
    ///
    /// - Parameter mayHide: true allows control and invisible characters, as in a checksum list, whose names are kept byte
    ///   for byte (`listedPathFault`). The default is false.
    package static func fault(inAsked name: String, mayHide: Bool = false) -> String? {
        if !isOneComponent(name) { return "it is not one plain name" }
        if !mayHide, name.unicodeScalars.contains(where: \.isHidden) {
            return "it holds control or invisible characters"
        }
        if joinsSlash(name) { return "it begins with a combining mark" }
        if isOwn(name) { return "its ending is reserved for unfinished files" }
        return nil
    }

    /// True for a name that starts with a combining mark. After a slash, the two form one character, so code that
    /// splits paths by characters does not see the slash, but the system does.
    package static func joinsSlash(_ name: String) -> Bool { !name.isEmpty && "/\(name)".first != "/" }

    /// True for a name that the system takes as one path component: 1 to 255 bytes without slash or zero byte, other
    /// than `.` and `..`.
    package static func isOneComponent(_ name: String) -> Bool {
        let bytes = name.utf8
        return (1...255).contains(bytes.count) && !bytes.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
            && !bytes.elementsEqual(".".utf8) && !bytes.elementsEqual("..".utf8)
    }
}
