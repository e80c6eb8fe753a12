import FKCore

/// `fk --version`
enum VersionCommand {
    static let version = "0.1.0"

    static func text(json: Bool) -> String {
        let library = TransportLibrary.description
        guard json else { return "fk \(version)\n\(library)\n" }
        return JSONValue.object([("version", .string(version)), ("transport", .string(library))]).compact + "\n"
    }
}
