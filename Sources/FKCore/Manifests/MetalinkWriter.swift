import FKMiddleware

/// Writes Metalink 4 (RFC 5854). It contains no date, so the same list produces the same bytes.
///
/// Metalink has no name for the id of a git blob, so it is not written.
enum MetalinkWriter {
    static var header: [UInt8] {
        Array(
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"\(MetalinkParser.namespace4)\">\n"
                + "  <generator>fk/\(Version.text)</generator>\n").utf8)
    }

    static var end: [UInt8] { Array("</metalink>\n".utf8) }

    static func file(_ entry: Manifest.Entry, _ name: String) throws(EntryFault) -> [UInt8] {
        guard !entry.sources.isEmpty else { throw EntryFault("it has no address") }
        guard name.unicodeScalars.allSatisfy(XMLCursor.isAllowed) else {
            throw EntryFault("XML does not allow a character of its name")
        }
        var text = ""
        write(entry, name, to: &text)
        return Array(text.utf8)
    }

    private static func write(_ entry: Manifest.Entry, _ name: String, to text: inout String) {
        text += "  <file name=\"\(escaped(name))\">\n"
        if let size = entry.size { text += "    <size>\(size)</size>\n" }
        for name in ["identity", "version", "language", "os", "description", "copyright"] {
            if let value = entry.attributes[name] { text += "    <\(name)>\(escaped(value))</\(name)>\n" }
        }
        for digest in entry.digests where digest.algorithm != .gitBlob {
            text += "    <hash type=\"\(digest.algorithm.rawValue)\">\(digest.hex)</hash>\n"
        }
        for pieces in entry.pieces where pieces.algorithm != .gitBlob {
            text += "    <pieces length=\"\(pieces.length)\" type=\"\(pieces.algorithm.rawValue)\">\n"
            for index in 0..<pieces.count { text += "      <hash>\(Digester.hex(pieces[index]))</hash>\n" }
            text += "    </pieces>\n"
        }
        for source in entry.sources {
            var attributes = ""
            if let location = source.location { attributes += " location=\"\(escaped(location))\"" }
            if source.priority != Manifest.Source.lowestPriority { attributes += " priority=\"\(source.priority)\"" }
            text += "    <url\(attributes)>\(escaped(source.url))</url>\n"
        }
        if let signature = entry.signature {
            text +=
                "    <signature mediatype=\"\(escaped(signature.mediaType))\">\(escaped(signature.text))</signature>\n"
        }
        text += "  </file>\n"
    }

    /// Escapes the special characters of XML as references, including tabs and line ends in attributes.
    private static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result.append(contentsOf: "&amp;".unicodeScalars)
            case "<": result.append(contentsOf: "&lt;".unicodeScalars)
            case ">": result.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
            case "\t", "\n", "\r": result.append(contentsOf: "&#\(scalar.value);".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
