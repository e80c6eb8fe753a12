import FKMiddleware
import Foundation

/// Reads the answer to a PROPFIND of depth 1 (RFC 4918 section 13).
enum DAVListing {
    private static let namespace = "DAV:"
    private static let maxText = 64 << 10

    /// A resource of the answer, as far as it was read.
    private struct Resource {
        var href = ""
        var isFolder = false
        var size: Int64?
        var tag: String?
        var time: String?
        /// The status of the whole resource, or that of the properties that are being read.
        var status: String?

        mutating func absorb(_ other: Self) {
            isFolder = isFolder || other.isFolder
            size = size ?? other.size
            tag = tag ?? other.tag
            time = time ?? other.time
        }
    }

    /// - Throws: XML that is malformed or cut off, or is no answer of WebDAV.
    static func read(
        _ bytes: [UInt8], in folder: WebEntry, _ scope: SourceScope, base: String
    ) throws(ListingFault) -> FolderPage {
        guard let base = LinkTarget.Base(base) else { throw ListingFault("its address is no URL") }
        var reader = XMLReader(bytes)
        var result = FolderPage()
        var open: [String] = []
        var resource: Resource?
        /// The properties of the present `propstat`, which count only if its status is 200.
        var properties = Resource()
        var text = ""
        var isRoot = true
        do throws(XMLReader.Fault) {
            reading: while true {
                switch try reader.next() {
                case .start(let element):
                    let name = element.namespace == namespace ? element.name : ""
                    if isRoot, name != "multistatus" {
                        throw XMLReader.Fault(reason: "it has no multistatus", offset: 0)
                    }
                    isRoot = false
                    open.append(name)
                    text = ""
                    switch name {
                    case "response": resource = Resource()
                    case "propstat": properties = Resource()
                    case "collection" where open.dropLast().last == "resourcetype": properties.isFolder = true
                    default: break
                    }
                case .text(let part): if text.utf8.count + part.utf8.count <= maxText { text += part }
                case .end:
                    let name = open.popLast() ?? ""
                    let value = text.trimmingCharacters(in: .whitespacesAndNewlines)
                    switch (name, open.last) {
                    case ("href", "response"): resource?.href = value
                    case ("status", "response"): resource?.status = value
                    case ("status", "propstat"): properties.status = value
                    case ("getcontentlength", "prop"): properties.size = Int64(value)
                    // A server may call a tag weak for the first second after a change (Apache): the same tag is the same version.
                    case ("getetag", "prop"):
                        properties.tag = value.hasPrefix("W/") ? String(value.dropFirst(2)) : value
                    case ("getlastmodified", "prop"): properties.time = value
                    case ("propstat", _): if isSuccess(properties.status) { resource?.absorb(properties) }
                    case ("response", _):
                        if let resource { add(resource, folder, scope, base, &result) }
                        resource = nil
                    default: break
                    }
                    text = ""
                case .done: break reading
                case .more: throw XMLReader.Fault(reason: "it is cut off", offset: 0)
                }
            }
        } catch {
            throw ListingFault(error.reason)
        }
        // Servers give them in the order of the disk.
        result.files.sort { ($0.name ?? "").utf8.lexicographicallyPrecedes(($1.name ?? "").utf8) }
        result.folders.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
        return result
    }

    private static func isSuccess(_ status: String?) -> Bool {
        guard let status else { return true }
        return status.split(separator: " ").dropFirst().first?.first == "2"
    }

    private static func add(
        _ resource: Resource, _ folder: WebEntry, _ scope: SourceScope, _ base: LinkTarget.Base,
        _ result: inout FolderPage
    ) {
        guard let target = LinkTarget(Array(resource.href.utf8), base: base) else {
            result.faults.append(SourceFault(resource.href, "its address is no URL", isIncomplete: false))
            return
        }
        let prefix = folder.path.isEmpty ? "" : folder.path + "/"
        guard var name = scope.name(of: target.url), name.utf8.starts(with: prefix.utf8), !target.hasQuery else {
            // The folder itself without its slash.
            if scope.name(of: target.url + "/") == prefix { return }
            result.faults.append(
                SourceFault(
                    String(resource.href.prefix(200)), "its address leaves the folder, or could be read in two ways",
                    isIncomplete: false))
            return
        }
        if name.utf8.last == UInt8(ascii: "/") { name.removeLast() }
        guard name + "/" != prefix, !name.isEmpty else { return }
        guard isSuccess(resource.status) else {
            result.faults.append(
                // It may be a folder.
                SourceFault(name, "the server answered \(resource.status ?? "") for it", isIncomplete: true))
            return
        }
        if resource.isFolder {
            let url = target.url.hasSuffix("/") ? target.url : target.url + "/"
            result.folders.append(WebEntry(path: name, url: url))
            return
        }
        var file = Manifest.FileFacts(name: name, sources: [.init(target.url)])
        file.size = resource.size.flatMap { $0 >= 0 ? $0 : nil }
        file.modified = resource.time.flatMap(Timestamps.date)
        let words = [resource.tag, resource.time, resource.size.map(String.init)].compactMap(\.self)
        file.version = words.isEmpty ? nil : words.joined(separator: " ")
        result.files.append(file)
    }
}
