// A middleware program in Swift, for the stage response: rejects pages that servers send instead of files, and moves all
// other files into a folder.
//
//     fk middleware add --stage response --name sort -- SwiftProgram FOLDER
//
// It imports nothing of FKDownloader: it reads and writes JSON. A middleware inside an application is in CustomMiddleware.
import Foundation

/// The members of the input that it uses.
struct Input: Decodable {
    let id: String
    let path: String
    let digest: [String: String]
}

struct Output: Encodable {
    let path: String
}

func refuse(_ reason: String) -> Never {
    FileHandle.standardError.write(Data("\(reason)\n".utf8))
    exit(1)
}

guard CommandLine.arguments.count == 2 else { refuse("usage: SwiftProgram FOLDER") }
let input: Input
do {
    input = try JSONDecoder().decode(Input.self, from: FileHandle.standardInput.readToEnd() ?? Data())
    let file = URL(fileURLWithPath: input.path)
    let beginning = try FileHandle(forReadingFrom: file).read(upToCount: 512) ?? Data()
    let text = String(decoding: beginning, as: UTF8.self).lowercased()
    if text.contains("<!doctype html") || text.contains("<html") {
        refuse("the server sent a page instead of a file")
    }
    // The name has the digest, so two files never meet, and a second run finds what the first one has made. The engine removes
    // the old place once the task's record has the new one.
    let folder = URL(fileURLWithPath: CommandLine.arguments[1])
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let digest = input.digest["sha-256"] ?? input.id
    let place = folder.appendingPathComponent("\(digest.prefix(16))-\(file.lastPathComponent)")
    if !FileManager.default.fileExists(atPath: place.path) {
        try FileManager.default.linkItem(at: file, to: place)
    }
    FileHandle.standardOutput.write(try JSONEncoder().encode(Output(path: place.path)))
} catch {
    refuse("\(error)")
}
