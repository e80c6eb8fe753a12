import FKMiddleware

/// Writes Metalink 4 (RFC 5854). It contains no date, so the same list produces the same bytes.
///
/// Metalink has no name for the id of a git blob, so it is not written.
enum MetalinkWriter {
    static func write(_ manifest: Manifest) -> Manifest.Written {
        var written = Manifest.Written(bytes: [], leftOut: [])
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"\(MetalinkParser.namespace4)\">\n"
        text += "  <generator>fk/\(Version.text)</generator>\n"
        manifest.eachNamed(.metalink4, &written) { entry, name, written in
            guard !entry.sources.isEmpty else { return written.leaveOut(entry, .metalink4, "it has no address") }
            guard name.unicodeScalars.allSatisfy(XMLCursor.isAllowed) else {
                return written.leaveOut(entry, .metalink4, "XML does not allow a character of its name")
            }
            write(entry, name, to: &text)
        }
        text += "</metalink>\n"
        written.bytes = Array(text.utf8)
        return written
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
            for index in 0..<pieces.count { text += "      <hash>\(ManifestDigest.hex(pieces[index]))</hash>\n" }
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
