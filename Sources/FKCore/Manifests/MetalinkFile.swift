import FKMiddleware

/// A file of a Metalink while its elements are read. Its first fault is stored, and the file is left out because of
/// it.
struct MetalinkFile {
    /// The result for a URL.
    enum Address {
        case taken
        /// A kind of URL that is not supported.
        case passedOver(String)
        /// An invalid URL and the reason.
        case refused(String)
    }

    private(set) var entry: Manifest.Entry
    private(set) var fault: (reason: String, place: TextPlaces.Place)?
    /// The place of its tag.
    let start: TextPlaces.Place
    /// The number of bytes before its first element.
    let position: Int
    /// The name as written, for messages.
    let shownName: String
    private var hashType: String?
    private var pieces: Pieces?
    private var url: (type: String?, source: Manifest.Source, start: TextPlaces.Place)?
    /// The URLs of the entry's sources.
    private var known = ExactText.Map<Bool>()
    private var passedOver = 0
    private var signatureType: String?

    /// A set of pieces while it is read.
    private struct Pieces {
        var length: Int64
        /// Nil for an unknown algorithm.
        var algorithm: Checksum.Algorithm?
        var bytes: [UInt8] = []
        /// The number of each piece, which version 3 contains.
        var numbers: [Int] = []
        /// The number from the tag of the piece that is being read.
        var number: Int?

        mutating func add(_ digest: [UInt8]) {
            bytes += digest
            numbers.append(number ?? numbers.count)
        }
    }

    /// The maximum length of a text about a file in bytes. The rest is discarded.
    private static let maxFact = 10_000

    init(_ name: String, at start: TextPlaces.Place, position: Int) {
        self.start = start
        self.position = position
        shownName = name
        entry = Manifest.Entry(name: name.plainListedPath, line: start.line)
        if let fault = name.listedPathFault { refuse(fault, at: start) }
    }

    /// Stores a fault if it is the first.
    mutating func refuse(_ reason: String, at place: TextPlaces.Place) {
        if fault == nil { fault = (reason, place) }
    }

    /// Performs the checks that need the whole file.
    mutating func finish() {
        entry.sources = Self.sorted(entry.sources)
        entry.pieces = entry.pieces.strongestFirst
        for pieces in entry.pieces {
            if let fault = EntryFields.fault(in: pieces, size: entry.size) { refuse(fault, at: start) }
        }
        guard entry.sources.isEmpty else { return }
        refuse(
            passedOver == 0
                ? "it has no address" : "it has no http or https address, only \(passedOver) of other kinds", at: start)
    }

    /// Sorts by priority. Equal ones keep their order.
    private static func sorted(_ sources: [Manifest.Source]) -> [Manifest.Source] {
        sources.enumerated().sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .map(\.element)
    }

    // MARK: Facts

    mutating func end(size text: String, at place: TextPlaces.Place) {
        guard let size = Int64(text), size >= 0, text.utf8.allSatisfy(\.isASCIIDigit) else {
            return refuse("the size '\(text)' is no number of bytes", at: place)
        }
        if let other = entry.size, other != size { return refuse("it has two sizes, \(other) and \(size)", at: place) }
        entry.size = size
    }

    mutating func end(fact name: String, _ text: String) {
        if entry.attributes[name] == nil, !text.isEmpty {
            entry.attributes[name] = String(text.prefix(Self.maxFact))
        }
    }

    mutating func begin(signature type: String?) { signatureType = type }

    mutating func end(signature text: String) {
        let type = signatureType ?? "pgp"
        let mediaType = type == "pgp" ? "application/pgp-signature" : type
        if entry.signature == nil { entry.signature = Manifest.Signature(mediaType: mediaType, text: text) }
    }

    // MARK: Digests

    mutating func begin(hash type: String?) { hashType = type ?? "" }

    /// - Returns: the name of an unknown algorithm; nil for a known one.
    mutating func end(hash text: String, at place: TextPlaces.Place) -> String? {
        let type = hashType ?? ""
        guard let algorithm = Checksum.Algorithm(listed: type) else { return "hash \(type.lowercased())" }
        guard let digest = Checksum(listed: algorithm, hex: text) else {
            refuse(Checksum.fault(in: text, algorithm), at: place)
            return nil
        }
        if !entry.digests.add(digest) { refuse("it has two different \(algorithm.rawValue) digests", at: place) }
        return nil
    }

    /// - Returns: the name of an unknown algorithm; nil for a known one.
    mutating func begin(pieces type: String?, length: String?, at place: TextPlaces.Place) -> String? {
        let algorithm = Checksum.Algorithm(listed: type ?? "")
        let bytes = length.flatMap { Int64($0) } ?? 0
        if bytes < 1 { refuse("the length of its pieces, '\(length ?? "")', is no number of bytes", at: place) }
        pieces = Pieces(length: bytes, algorithm: algorithm)
        return algorithm == nil ? "hash \(type?.lowercased() ?? "")" : nil
    }

    mutating func begin(pieceHash number: String?, at place: TextPlaces.Place) {
        pieces?.number = number.flatMap { Int($0) }
        if number != nil, pieces?.number == nil { refuse("the number of a piece is none", at: place) }
    }

    mutating func end(pieceHash text: String, at place: TextPlaces.Place) {
        guard let algorithm = pieces?.algorithm else { return }
        guard text.utf8.count == algorithm.byteCount * 2, let bytes = Checksum.bytes(hex: text) else {
            return refuse("piece: " + Checksum.fault(in: text, algorithm), at: place)
        }
        pieces?.add(bytes)
    }

    mutating func endPieces(at place: TextPlaces.Place) {
        guard let done = pieces, let algorithm = done.algorithm else { return pieces = nil }
        pieces = nil
        if entry.pieces.contains(where: { $0.algorithm == algorithm }) {
            return refuse("it has two sets of \(algorithm.rawValue) pieces", at: place)
        }
        var bytes = done.bytes
        if !done.numbers.elementsEqual(0..<done.numbers.count) {
            let order = done.numbers.enumerated().sorted { $0.element < $1.element }
            guard order.map(\.element).elementsEqual(0..<order.count) else {
                return refuse("the numbers of its pieces are not 0 to \(order.count - 1)", at: place)
            }
            let length = algorithm.byteCount
            bytes = order.flatMap { done.bytes[$0.offset * length..<($0.offset + 1) * length] }
        }
        entry.pieces.append(Manifest.Pieces(length: done.length, algorithm: algorithm, bytes: bytes))
    }

    // MARK: Addresses

    /// The place of the address that is being read.
    var urlStart: TextPlaces.Place? { url?.start }

    mutating func begin(url element: XMLReader.Element, at start: TextPlaces.Place, isVersion3: Bool) {
        var source = Manifest.Source("")
        if isVersion3 {
            // 0 to 100, the best is 100.
            if let preference = element["preference"].flatMap({ Int($0) }), (0...100).contains(preference) {
                source.priority = 101 - preference
            }
        } else if let priority = element["priority"].flatMap({ Int($0) }),
            (1...Manifest.Source.lowestPriority).contains(priority)
        {
            source.priority = priority
        }
        if let location = element["location"]?.lowercased(), !location.isEmpty, location.utf8.count <= 16 {
            source.location = location
        }
        url = (isVersion3 ? element["type"]?.lowercased() : nil, source, start)
    }

    mutating func end(url text: String, _ base: BaseURL?) -> Address {
        guard let (type, found, _) = url else { return .taken }
        url = nil
        if type == "bittorrent" || type == "torrent" {
            passedOver += 1
            return .passedOver("torrent")
        }
        var source = found
        source.url = text
        guard let scheme = Self.scheme(text) else {
            guard let base, !text.isEmpty else { return .refused("'\(text)' is no address: it has no scheme") }
            source.url = base.resolve(text)
            return address(source)
        }
        guard scheme == "http" || scheme == "https" else {
            passedOver += 1
            return .passedOver(scheme)
        }
        return address(source)
    }

    private mutating func address(_ source: Manifest.Source) -> Address {
        if let reason = source.url.urlFault { return .refused(reason) }
        if known[source.url] == nil {
            known[source.url] = true
            entry.sources.append(source)
        }
        return .taken
    }

    /// In lower case; nil for a relative reference.
    private static func scheme(_ text: String) -> String? {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex else { return nil }
        let word = text.utf8[..<colon]
        guard let first = word.first, first.isASCIILetter, word.count <= 32,
            word.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) })
        else { return nil }
        return String(Substring(word)).lowercased()
    }
}
