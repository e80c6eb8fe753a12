import FKCore

/// `fk --version`
enum VersionCommand {
    static func text(json: Bool) -> String {
        let library = TransportLibrary.description
        guard json else { return "fk \(Version.text)\n\(library)\n" }
        return JSONValue.object([("version", .string(Version.text)), ("transport", .string(library))]).compact + "\n"
    }
}
