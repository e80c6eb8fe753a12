import FKMiddleware

extension WebFolder {
    /// The most bytes of a page that `isListing` looks at.
    package static let longestListing = 4 << 20

    /// True if a page is the listing of a folder that `fk get -r` and `Downloader.listing` read.
    ///
    /// - Parameter bytes: the page, or its first `longestListing`.
    package static func isListing(_ bytes: [UInt8], of url: String) -> Bool {
        let base = String(url.prefix { $0 != "?" && $0 != "#" })
        guard base.hasSuffix("/"), let scope = SourceScope(base) else { return false }
        let root = WebEntry(path: "", url: base)
        if bytes.first == UInt8(ascii: "["), let page = try? JSONListing.read(bytes, in: root, scope, base: base) {
            return !page.files.isEmpty || !page.folders.isEmpty
        }
        return (try? HTMLListing.read(bytes, in: root, scope, base: base)) != nil
    }
}

/// Reads the HTML that a web server makes of a folder: nginx, Apache, lighttpd, Caddy, IIS, Python, Go, rclone and similar ones.
enum HTMLListing {
    /// - Parameter base: the URL of the page.
    /// - Throws: a page that is cut off, or is none that a server makes of a folder.
    static func read(
        _ bytes: [UInt8], in folder: WebEntry, _ scope: SourceScope, base: String
    ) throws(ListingFault) -> FolderPage {
        let page = LinkScanner(bytes)
        guard !page.isTooLong else { throw ListingFault("it has more than \(LinkScanner.maxLinks) links") }
        guard var base = LinkTarget.Base(base) else { throw ListingFault("its address is no URL") }
        if let own = page.base, let target = LinkTarget(own, base: base), let named = LinkTarget.Base(target.url) {
            base = named
        }
        let prefix = folder.path.isEmpty ? "" : folder.path + "/"
        var result = FolderPage()
        var evidence = Evidence()
        /// The places of files in `result.files`: listings have a link for the icon and one for the name.
        var places: [ExactText: Int] = [:]
        var known: Set<ExactText> = []
        for link in page.links {
            guard let target = LinkTarget(link.target, base: base), !target.isFragment else { continue }
            let kind = kind(of: target, scope, prefix)
            let isNamed = kind.name.map { isName(link.text, of: $0) } ?? isName(link.text, of: lastPart(target.url))
            evidence.add(kind, isNamed: isNamed)
            switch kind {
            case .itself, .parent: continue
            case .elsewhere:
                if isNamed { result.leftOut["links to other places", default: 0] += 1 }
            case .query:
                if isNamed { result.leftOut["links with a query", default: 0] += 1 }
            case .ambiguous:
                result.faults.append(
                    SourceFault(
                        prefix + String(decoding: link.target.prefix(200), as: UTF8.self),
                        "its address has encoded dots or slashes, or is no UTF-8", isIncomplete: false))
            case .folder(let name):
                if known.insert(ExactText(name)).inserted {
                    result.folders.append(WebEntry(path: name, url: target.url))
                }
            case .file(let name):
                let version = version(of: link)
                if let place = places[ExactText(name)] {
                    // The second link may stand in the row that has the time.
                    if let version { result.files[place].version = version }
                    continue
                }
                places[ExactText(name)] = result.files.count
                var file = Manifest.FileFacts(name: name, sources: [.init(target.url)])
                file.version = version
                result.files.append(file)
            }
        }
        guard page.isWhole else { throw ListingFault("it is cut off") }
        guard evidence.isListing(page, of: folder) else { throw ListingFault("it is a web page") }
        return result
    }

    /// The target of a link as the listing's folder sees it.
    private enum Kind {
        /// The folder itself, also with a query that sorts it.
        case itself
        /// The folder above.
        case parent
        case file(String)
        case folder(String)
        case query
        case elsewhere
        /// A path below the folder that could be read in two ways.
        case ambiguous

        var name: String? {
            switch self {
            case .file(let name), .folder(let name): name
            default: nil
            }
        }
    }

    private static func kind(of target: LinkTarget, _ scope: SourceScope, _ prefix: String) -> Kind {
        guard let name = scope.name(of: target.url) else {
            return scope.isAmbiguous(target.url) ? .ambiguous : scope.isParent(target.url) ? .parent : .elsewhere
        }
        guard name.utf8.starts(with: prefix.utf8) else {
            return prefix.utf8.starts(with: name.utf8) ? .parent : .elsewhere
        }
        if name.utf8.count == prefix.utf8.count { return .itself }
        if target.hasQuery { return .query }
        return name.utf8.last == UInt8(ascii: "/") ? .folder(String(name.dropLast())) : .file(name)
    }

    private static func lastPart(_ url: String) -> String {
        let path = url.prefix { $0 != "?" }
        let last = path.split(separator: "/").last ?? ""
        return last.percentDecoded ?? ""
    }

    /// True if the text of a link is the name, or its beginning where the listing shortens it.
    private static func isName(_ text: [UInt8], of name: String) -> Bool {
        var text = text[...]
        func isBlank(_ byte: UInt8) -> Bool { byte <= 0x20 }
        text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        let path = name.utf8.last == UInt8(ascii: "/") ? name.utf8.dropLast() : name.utf8[...]
        let start = path.lastIndex(of: UInt8(ascii: "/")).map { path.index(after: $0) } ?? path.startIndex
        let name = path[start...]
        guard !text.isEmpty, !name.isEmpty else { return false }
        if text.last == UInt8(ascii: "/") { text.removeLast() }
        if text.elementsEqual(name) { return true }
        for end in ["..>", "...", "..", "…", "&gt;", ">"] where text.suffix(end.utf8.count).elementsEqual(end.utf8) {
            let start = text.dropLast(end.utf8.count)
            // A cut may leave half of a letter.
            return start.count >= 4 && name.starts(with: start.dropLast(3))
        }
        return false
    }

    /// The text of the link's row, if it has a time: that and a size, in the words of the server. A size in words alone, such as `4.9K`,
    /// says nothing about the bytes.
    private static func version(of link: LinkScanner.Link) -> String? {
        let row = link.row
        let hasTime = row.indices.dropFirst().dropLast().contains { index in
            row[index - 1].isASCIIDigit && isInTime(row[index])
                && (row[index + 1].isASCIIDigit || row[index + 1].isASCIILetter)
        }
        return hasTime ? String(decoding: row, as: UTF8.self) : nil
    }

    private static func isInTime(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ":") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "/")
    }

    /// What shows that a page is the listing of a folder.
    private struct Evidence {
        private var children = 0
        private var named = 0
        private var others = 0
        private var hasParent = false

        mutating func add(_ kind: Kind, isNamed: Bool) {
            switch kind {
            case .itself: break
            case .parent: hasParent = true
            case .file, .folder:
                children += 1
                if isNamed { named += 1 }
            case .query, .elsewhere, .ambiguous: others += 1
            }
        }

        /// True if its title is that of a listing; if most of its links have the name of what they lead to; or if it has nothing at all
        /// but an empty block, which is an empty folder.
        func isListing(_ page: LinkScanner, of folder: WebEntry) -> Bool {
            if Self.isTitle(String(decoding: page.title, as: UTF8.self).lowercased(), folder) { return true }
            if named > 0 { return named * 3 >= children && named >= others }
            return children == 0 && others == 0 && page.isBlank && (page.hasBlock || hasParent)
        }

        private static let titles = [
            "index of", "directory listing", "listing of", "directory: /", "directory of", "listing: /",
        ]

        private static func isTitle(_ title: String, _ folder: WebEntry) -> Bool {
            if titles.contains(where: title.contains) { return true }
            // Caddy and IIS: the path of the folder.
            let path = URLParts(folder.url).path
            let text = path.percentDecoded ?? String(path)
            let name = text.lowercased()
            let ends = [name, String(name.dropLast())]
            return text.utf8.count > 1 && ends.contains { title == $0 || title.hasSuffix(" " + $0) }
                || title == "/" && text == "/"
        }
    }
}
