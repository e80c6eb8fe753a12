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
}
