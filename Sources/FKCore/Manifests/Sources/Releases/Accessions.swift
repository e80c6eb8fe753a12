import FKMiddleware
import FKTransport

/// The files of a study, sample, experiment, run or analysis of the European Nucleotide Archive (`ena:ACCESSION`).
enum ENAReport {
    /// The columns to ask for: each file's address without a scheme, length and MD5, several of them divided by `;`.
    enum Kind: String, CaseIterable {
        case run = "read_run"
        case analysis

        /// The column that names the record.
        var accession: String { self == .run ? "run_accession" : "analysis_accession" }
        /// The groups of files, the preferred one first. Those that were submitted are the origin of the archive's own.
        var groups: [String] { self == .run ? ["fastq", "submitted", "sra"] : ["generated", "submitted"] }
        /// The value of `fields`.
        var fields: String {
            ([accession] + groups.flatMap { ["\($0)_ftp", "\($0)_bytes", "\($0)_md5"] }).joined(separator: ",")
        }
    }

    /// The most files of a report.
    static let maxFiles = 1_000_000

    /// True for an accession: letters and digits, as `PRJEB1787`, `SAMEA123`, `ERR164407`, `SRR000001`, `ERZ1`.
    static func isAccession(_ text: String) -> Bool {
        (4...32).contains(text.utf8.count) && (text.utf8.first?.isASCIILetter ?? false)
            && text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit }
    }

    /// The report of an accession.
    static func kind(of accession: String) -> Kind {
        let text = accession.uppercased()
        return text.hasPrefix("ERZ") || text.hasPrefix("SRZ") || text.hasPrefix("DRZ") ? .analysis : .run
    }

    static func url(of accession: String, at api: String) -> String {
        let kind = kind(of: accession)
        return "\(api)/filereport?accession=\(accession.uppercased())&result=\(kind.rawValue)&fields=\(kind.fields)"
            + "&format=tsv&limit=0"
    }

    /// Reads a report: a line with the names of the columns, and a line for each run. A run without files has empty columns.
    ///
    /// - Parameters:
    ///   - scheme: the scheme of the files' addresses, which the report leaves out.
    ///   - take: receives the files of each line, with the fault of a line that cannot be used.
    /// - Throws: `AnswerFault` for a text that is no report; `.notFound` for an empty one; the errors of `take`.
    static func read(
        _ bytes: [UInt8], _ kind: Kind, scheme: String = "https",
        _ take: (Result<[Manifest.FileFacts], AnswerFault>, _ line: Int) throws -> Void
    ) throws {
        var columns: [String: Int]?
        var width = 0
        var line = 0
        var count = 0
        for row in bytes.split(separator: 0x0a, omittingEmptySubsequences: false) {
            line += 1
            let text = row.last == 0x0d ? row.dropLast() : row
            if text.isEmpty { continue }
            guard let string = String(validating: text, as: UTF8.self) else {
                throw AnswerFault("line \(line) of the report is not UTF-8")
            }
            let cells = string.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard let known = columns else {
                guard cells.contains(kind.accession), cells.contains(where: { $0.hasSuffix("_ftp") }) else {
                    throw AnswerFault(
                        "the answer is no report: it has no column \(kind.accession) and none of addresses")
                }
                width = cells.count
                columns = Dictionary(cells.enumerated().map { ($1, $0) }) { first, _ in first }
                continue
            }
            guard cells.count == width else {
                throw AnswerFault(
                    "line \(line) of the report has \(cells.count) columns and not \(width): it is cut off")
            }
            func cell(_ name: String) -> String { known[name].flatMap { $0 < cells.count ? cells[$0] : nil } ?? "" }
            let files = Result { () throws(AnswerFault) in try Self.files(kind, scheme, line, cell) }
            if case .success(let files) = files { count += files.count }
            guard count <= maxFiles else { throw AnswerFault("the report has more than \(maxFiles) files") }
            try take(files, line)
        }
        guard columns != nil else {
            throw DownloadError(.notFound, "The archive has no such accession: its report is empty.")
        }
    }

    private static func files(
        _ kind: Kind, _ scheme: String, _ line: Int, _ cell: (String) -> String
    ) throws(AnswerFault) -> [Manifest.FileFacts] {
        let run = cell(kind.accession)
        guard isAccession(run) else { throw AnswerFault("line \(line) of the report names no \(kind.accession)") }
        guard let group = kind.groups.first(where: { !cell("\($0)_ftp").isEmpty }) else { return [] }
        func list(_ name: String) -> [Substring] {
            let text = cell("\(group)_\(name)")
            return text.isEmpty ? [] : text.split(separator: ";", omittingEmptySubsequences: false)
        }
        let (places, sizes, digests) = (list("ftp"), list("bytes"), list("md5"))
        guard sizes.isEmpty || sizes.count == places.count, digests.isEmpty || digests.count == places.count else {
            throw AnswerFault("\(run) has \(places.count) files, \(sizes.count) lengths and \(digests.count) digests")
        }
        var files: [Manifest.FileFacts] = []
        for (index, place) in places.enumerated() where !place.isEmpty {
            let path = place.split(separator: "://", maxSplits: 1).last ?? place
            let url = "\(scheme)://\(path)"
            guard url.urlFault == nil, let name = path.split(separator: "/").last, path.contains("/") else {
                throw AnswerFault("'\(place.prefix(80))' of \(run) is no address")
            }
            var file = Manifest.FileFacts(
                name: "\(run)/\(name.percentDecoded ?? String(name))", sources: [.init(url)], line: line)
            if let text = index < sizes.count ? sizes[index] : nil, !text.isEmpty {
                guard let size = Int64(text), size >= 0 else {
                    throw AnswerFault("the length of '\(place.prefix(80))' is no number")
                }
                file.size = size
            }
            if let text = index < digests.count ? digests[index] : nil, !text.isEmpty {
                guard let digest = Checksum(listed: .md5, hex: text) else {
                    throw AnswerFault("the MD5 of '\(place.prefix(80))' is malformed")
                }
                file.digests = [digest]
            }
            files.append(file)
        }
        return files
    }
}

/// The files of an item of the Internet Archive (`ia:ITEM`), by its metadata API.
enum ArchiveItem {
    static func isName(_ text: String) -> Bool {
        (1...100).contains(text.utf8.count) && text != "." && text != ".."
            && text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "._-@".utf8.contains($0) }
    }

    /// The members of the document that are read.
    struct Facts: Sendable {
        /// The number of files that only members of the archive may fetch.
        var privateCount = 0
        /// True if the archive has withdrawn the item.
        var isDark = false
    }

    /// Reads the metadata of an item. Files are read one by one, because an item may have 100,000.
    ///
    /// - Parameters:
    ///   - base: the URL of the item's folder.
    ///   - take: receives the files, a portion at a time, or the fault of a single one.
    /// - Throws: `AnswerFault` for a document that is none; `.notFound` for that of a missing item; the errors of `take`.
    static func read(
        _ bytes: [UInt8], item: String, base: String,
        _ take: (Result<Manifest.FileFacts, AnswerFault>) throws -> Void
    ) throws -> Facts {
        var facts = Facts()
        var hasFiles = false
        var reader = JSONReader(bytes)
        do {
            try reader.expect(UInt8(ascii: "{"))
            if !reader.skip(UInt8(ascii: "}")) {
                repeat {
                    switch try reader.memberName() {
                    case "files":
                        hasFiles = true
                        try reader.expect(UInt8(ascii: "["))
                        if reader.skip(UInt8(ascii: "]")) { break }
                        repeat {
                            let value = try reader.value()
                            if value.object?["private"]?.string == "true" {
                                facts.privateCount += 1
                                continue
                            }
                            let file = Result { () throws(AnswerFault) in try Self.file(value, item, base) }
                            try take(file)
                        } while reader.skip(UInt8(ascii: ","))
                        try reader.expect(UInt8(ascii: "]"))
                    case "is_dark": facts.isDark = try reader.value().isTrue
                    default: _ = try reader.scalar()
                    }
                } while reader.skip(UInt8(ascii: ","))
                try reader.expect(UInt8(ascii: "}"))
            }
            try reader.expectEnd()
        } catch let fault as JSONReader.Fault {
            throw AnswerFault("the item's metadata cannot be read: \(fault.reason), at byte \(fault.offset)")
        }
        if facts.isDark { throw AnswerFault("the archive has withdrawn the item") }
        guard hasFiles else { throw DownloadError(.notFound, "The archive has no item '\(item)'.") }
        return facts
    }

    private static func file(
        _ value: JSONReader.Value, _ item: String, _ base: String
    ) throws(AnswerFault) -> Manifest.FileFacts {
        guard let object = value.object, let name = object["name"]?.string else {
            throw AnswerFault("a file has no name")
        }
        if let fault = name.listedPathFault { throw AnswerFault("'\(name.prefix(200))': \(fault)") }
        var file = Manifest.FileFacts(name: name.plainListedPath, sources: [.init("\(base)/\(BaseURL.encoded(name))")])
        // The list of the item's files lists itself, with values of an earlier state.
        if name == "\(item)_files.xml" { return file }
        if let text = object["size"]?.text {
            guard let size = Int64(text), size >= 0 else { throw AnswerFault("the size of '\(name)' is no number") }
            file.size = size
        }
        for (member, algorithm) in [("sha1", Checksum.Algorithm.sha1), ("md5", .md5)] {
            guard let text = object[member]?.string, !text.isEmpty else { continue }
            guard let digest = Checksum(listed: algorithm, hex: text) else {
                throw AnswerFault("the \(member) of '\(name)' is malformed")
            }
            _ = file.digests.add(digest)
        }
        return file
    }
}

/// The European Nucleotide Archive (`ena:ACCESSION`). `FK_ENA_ENDPOINT` names another server than the usual one.
struct ENA: Source {
    var schemes: [String] { ["ena"] }
    var form: String { "ena:ACCESSION" }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        guard ENAReport.isAccession(reference.rest) else {
            throw reference.fault("an accession has letters and digits, such as PRJEB1787 or ERR164407", form)
        }
        let address = try SourceEndpoint.url("FK_ENA_ENDPOINT", "https://www.ebi.ac.uk/ena/portal/api", in: environment)
        let accession = reference.rest.uppercased()
        return SourcePlace(
            reference, title: "ena:\(accession)", folderName: accession, address: address, pinsFiles: true)
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let accession = place.reference.rest
            let address = place.address ?? ""
            let answer: SourceAnswer
            do throws(DownloadError) {
                answer = try await client.get(
                    ENAReport.url(of: accession, at: address), accept: "text/plain, */*;q=0.5")
            } catch {
                var error = error
                if let status = error.status, [204, 400, 404].contains(status) {
                    error.code = .notFound
                    error.message = "The archive has no files of the accession \(accession.uppercased())."
                }
                throw error
            }
            // The report names files without a scheme. Those of a server on this machine have no TLS.
            let scheme = URLOrigin(address).map { AddressClass.isPrivate(host: $0.host) == true && $0.scheme == "http" }
            var pages: [SourcePage] = []
            var page = SourcePage()
            var isEmpty = true
            do {
                try ENAReport.read(
                    answer.bytes, ENAReport.kind(of: accession), scheme: scheme == true ? "http" : "https"
                ) { files, line in
                    switch files {
                    case .success(let files):
                        page.files += files
                        isEmpty = isEmpty && files.isEmpty
                    case .failure(let fault):
                        page.faults.append(SourceFault("", fault.reason, isIncomplete: false))
                    }
                    if page.files.count >= 1_000 {
                        pages.append(page)
                        page = SourcePage()
                    }
                }
            } catch let fault as AnswerFault {
                throw DownloadError(.protocolViolation, "\(place.title): \(fault.reason).", url: answer.head.url)
            }
            if isEmpty, page.faults.isEmpty {
                throw DownloadError(.notFound, "The archive has no files of the accession \(accession.uppercased()).")
            }
            for page in pages + [page] where !page.files.isEmpty || !page.faults.isEmpty { try await send(page) }
        }
    }
}

/// Items of the Internet Archive (`ia:ITEM`). `FK_IA_ENDPOINT` names another server than the usual one.
struct InternetArchive: Source {
    var schemes: [String] { ["ia"] }
    var form: String { "ia:ITEM" }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        guard ArchiveItem.isName(reference.rest) else {
            throw reference.fault("the name of an item has letters, digits, '.', '_', '-' and '@'", form)
        }
        let address = try SourceEndpoint.url("FK_IA_ENDPOINT", "https://archive.org", in: environment)
        return SourcePlace(reference, folderName: reference.rest, address: address, pinsFiles: true)
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let item = place.reference.rest
            let address = place.address ?? ""
            let answer = try await client.get("\(address)/metadata/\(item)", accept: "application/json")
            var pages: [SourcePage] = []
            var page = SourcePage()
            let facts: ArchiveItem.Facts
            do {
                facts = try ArchiveItem.read(answer.bytes, item: item, base: "\(address)/download/\(item)") { file in
                    switch file {
                    case .success(let file): page.files.append(file)
                    case .failure(let fault): page.faults.append(SourceFault("", fault.reason, isIncomplete: false))
                    }
                    if page.files.count >= 1_000 {
                        pages.append(page)
                        page = SourcePage()
                    }
                }
            } catch let fault as AnswerFault {
                throw DownloadError(.protocolViolation, "\(place.title): \(fault.reason).", url: answer.head.url)
            }
            if facts.privateCount > 0 { page.leftOut["for members of the archive only"] = facts.privateCount }
            for page in pages + [page] { try await send(page) }
        }
    }
}
