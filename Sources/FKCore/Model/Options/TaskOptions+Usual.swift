import FKMiddleware

/// The options that nearly every task of a list has.
extension TaskOptions: UsualValue {
    var isUsual: Bool {
        var rest = self
        (rest.checksum, rest.existing, rest.list, rest.secretOrigin, rest.size) = (nil, nil, nil, nil, nil)
        return rest == TaskOptions()
    }

    func writeUsual(to text: inout JSONText) {
        text.beginObject()
        if let checksum {
            text.key("checksum")
            text.beginObject()
            text.member("algorithm", checksum.algorithm.rawValue)
            text.member("hex", checksum.hex)
            text.endObject()
        }
        if let existing { text.member("existing", existing.rawValue) }
        if let list {
            text.key("list")
            text.beginObject()
            text.member("name", list.name)
            if let signer = list.signer { text.member("signer", signer) }
            text.endObject()
        }
        if let secretOrigin { text.member("secretOrigin", secretOrigin) }
        if let size { text.member("size", size) }
        text.endObject()
    }

    static func readUsual(_ scanner: inout JSONScanner) throws -> Self {
        var options = TaskOptions()
        try scanner.beginObject()
        if scanner.has("checksum") { options.checksum = try Checksum(scanning: &scanner) }
        if scanner.has("existing") {
            guard let existing = ExistingFilePolicy(rawValue: try scanner.text()) else {
                throw JSONScanner.Unexpected()
            }
            options.existing = existing
        }
        if scanner.has("list") { options.list = try ListOrigin(scanning: &scanner) }
        if scanner.has("secretOrigin") { options.secretOrigin = try scanner.text() }
        if scanner.has("size") { options.size = try scanner.integer(Int64.self) }
        try scanner.endObject()
        return options
    }
}

extension Checksum {
    fileprivate init(scanning scanner: inout JSONScanner) throws {
        try scanner.beginObject()
        try scanner.need("algorithm")
        guard let algorithm = Algorithm(rawValue: try scanner.text()) else { throw JSONScanner.Unexpected() }
        try scanner.need("hex")
        let hex = try scanner.text()
        try self.init(algorithm, hex: hex)
        // The initializer takes upper case too.
        guard self.hex.isExactly(hex) else { throw JSONScanner.Unexpected() }
        try scanner.endObject()
    }
}

extension ListOrigin {
    fileprivate init(scanning scanner: inout JSONScanner) throws {
        self.init("", signer: nil)
        try scanner.beginObject()
        try scanner.need("name")
        name = try scanner.text()
        if scanner.has("signer") { signer = try scanner.text() }
        try scanner.endObject()
    }
}
