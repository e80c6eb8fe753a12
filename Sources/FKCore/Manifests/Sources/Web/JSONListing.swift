import FKMiddleware
import Foundation

/// Reads the JSON that nginx (`autoindex_format json`) and Caddy (`browse`) make of a folder.
enum JSONListing {
    /// - Throws: JSON of another shape, or that is cut off.
    static func read(
        _ bytes: [UInt8], in folder: WebEntry, _ scope: SourceScope, base: String
    ) throws(ListingFault) -> FolderPage {
        var list = JSONList(.json, takesObjects: false)
        // nginx writes names as they are on its disk.
        let isText = String(validating: bytes, as: UTF8.self) != nil
        list.append(isText ? bytes : Array(String(decoding: bytes, as: UTF8.self).utf8))
        list.finish()
        var result = FolderPage()
        let prefix = folder.path.isEmpty ? "" : folder.path + "/"
        do throws(ManifestError) {
            while true {
                switch try list.next() {
                case .element(let element):
                    guard let entry = Entry(element.object) else {
                        throw ManifestError(form: .json, line: element.line, "an entry has no name and type")
                    }
                    // In a text that is UTF-8, U+FFFD is a letter of the name. Here it stands for bytes that are none.
                    guard isText || !entry.name.contains("\u{fffd}") else {
                        result.faults.append(
                            SourceFault(prefix + entry.name, "its name is no UTF-8", isIncomplete: false))
                        continue
                    }
                    add(entry, prefix, folder, &result)
                case .done: return result
                case .member, .container, .more: throw ManifestError(form: .json, "it is no list of entries")
                }
            }
        } catch {
            throw ListingFault(error.reason)
        }
    }

    private static func add(_ entry: Entry, _ prefix: String, _ folder: WebEntry, _ result: inout FolderPage) {
        guard !entry.name.isEmpty, entry.name != ".", entry.name != "..", !entry.name.utf8.contains(UInt8(ascii: "/"))
        else {
            result.faults.append(
                SourceFault(prefix + entry.name, "the listing has a path where a name should be", isIncomplete: false))
            return
        }
        let path = prefix + entry.name
        let url = folder.url + BaseURL.encoded(entry.name)
        switch entry.kind {
        case .folder: result.folders.append(WebEntry(path: path, url: url + "/"))
        case .other: result.leftOut["entries that are no files", default: 0] += 1
        case .file:
            var file = Manifest.FileFacts(name: path, sources: [.init(url)])
            file.size = entry.size
            file.version = entry.time.map { "\($0) \(entry.size.map(String.init) ?? "")" }
            file.modified = entry.time.flatMap(Timestamps.date)
            result.files.append(file)
        }
    }

    private struct Entry {
        enum Kind { case file, folder, other }

        var name: String
        var kind: Kind
        var size: Int64?
        var time: String?

        init?(_ object: JSONReader.Object) {
            guard var name = object["name"]?.string else { return nil }
            if let type = object["type"]?.string {
                kind = type == "directory" ? .folder : type == "file" ? .file : .other
                time = object["mtime"]?.string
            } else if case .bool(let isFolder)? = object["is_dir"] {
                kind = isFolder ? .folder : .file
                time = object["mod_time"]?.string
                if isFolder, name.utf8.last == UInt8(ascii: "/") { name.removeLast() }
            } else {
                return nil
            }
            self.name = name
            size = object["size"]?.integer.flatMap { $0 >= 0 ? $0 : nil }
        }
    }
}
