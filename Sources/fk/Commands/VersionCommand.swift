import FKCore

enum VersionCommand {
    static func text(json: Bool) -> String {
        let library = TransportLibrary.description
        guard json else { return "fk \(Version.text)\n\(library)\n" }
        return JSONLayout.line(JSON.texts(["version": Version.text, "transport": library]).bytes, indent: nil)
    }
}
