import FKMiddleware

/// What a column of a table, a member of an object or a field of a list says about the file. It is the only table of names, for CSV,
/// TSV, JSON Lines, JSON and records.
///
/// | field | names, without regard to case, `_`, `-`, `:`, blanks and brackets |
/// | --- | --- |
/// | address of the file | `download_url`, `browser_download_url`, `contentUrl`, `file_url`, `downloads`, `direct_asset_url` |
/// | address | `url`, `urls`, `uri`, `source_url` |
/// | address that may be a page's, or a path | `link`, `href`, `download_path` |
/// | mirrors | `mirror`, `mirrors`, `mirror_urls` |
/// | path | `path`, `file_path`, `key`, `out`; `materialized_path` |
/// | name | `filename`, `dest-filename`; else `name`, `file` |
/// | folder | `dest`, `folder`, `subfolder`, `directoryLabel` |
/// | size | `size`, `bytes`, `fileSize`, `content_length` ... |
/// | digest | `DigestWord` |
enum ListField: Hashable, Sendable {
    /// The addresses of the best rank are those of the file. The others are pages about it.
    case address(AddressRank)
    case mirror
    /// The path below the folder of the list. A lower rank is preferred.
    case path(Int)
    /// The last part of the path. A lower rank is preferred.
    case name(Int)
    /// The folder of the file, below the folder of the list.
    case folder
    case size
    case digest(DigestWord.Meaning)

    /// How surely an address is that of the file.
    enum AddressRank: Int, Hashable, Comparable, Sendable {
        /// `--column url=NAME`, or the template.
        case chosen
        case file
        case plain
        case page

        static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
    }

    /// Reads the name of a column; nil for one without a meaning.
    init?(_ name: some StringProtocol) {
        guard name.utf8.count <= 100 else { return nil }
        let plain = DigestWord.plain(String(name))
        if let field = Self.names[plain] {
            self = field
        } else if let meaning = DigestWord.meaning(of: plain) {
            self = .digest(meaning)
        } else {
            return nil
        }
    }

    /// Reads the field of `--column FIELD=NAME`; nil for another word.
    package init?(option word: String) {
        switch word.lowercased() {
        case "url": self = .address(.chosen)
        case "mirror": self = .mirror
        case "path": self = .path(-1)
        case "name": self = .name(-1)
        case "folder": self = .folder
        case "size": self = .size
        case "checksum": self = .digest(.any(isCertain: true))
        default:
            guard let algorithm = Checksum.Algorithm(member: word) ?? Checksum.Algorithm(listed: word) else {
                return nil
            }
            self = .digest(.algorithm(algorithm))
        }
    }

    /// True for a part of the file's path.
    var isName: Bool {
        switch self {
        case .path, .name, .folder: true
        case .address, .mirror, .size, .digest: false
        }
    }

    /// True for an address, also one that may be a page's.
    var isAddress: Bool { if case .address = self { true } else { false } }

    private static let names: [String: ListField] = {
        var names: [String: ListField] = [:]
        func add(_ field: ListField, _ words: String) {
            for word in words.split(separator: " ") { names[String(word)] = field }
        }
        add(
            .address(.file),
            "downloadurl downloadurls browserdownloadurl contenturl fileurl fileurls fileuri downloaduri downloadlink directurl "
                + "directlink downloads directasseturl httpurl httpsurl dataurl imageurl accessurl signedurl presignedurl "
                + "filedownloadurl downloadhref")
        add(.address(.plain), "url urls uri uris")
        add(.address(.page), "link links href sourceurl sourceuri downloadpath")
        add(.mirror, "mirror mirrors mirrorurl mirrorurls alternateurl alternateurls")
        add(.path(0), "materializedpath")
        add(.path(2), "key")
        add(.path(1), "path filepath relativepath relpath out destpath destinationpath")
        add(.name(0), "filename destfilename outputfilename basename originalfilename localfilename targetfilename")
        add(.name(1), "name file")
        add(.folder, "dest folder subfolder subdir directorylabel")
        add(
            .size,
            "size sizes filesize bytes contentsize contentlength sizebytes sizeinbytes filesizebytes filesizeinbytes bytesize "
                + "numbytes nbytes length bytelength")
        return names
    }()
}
