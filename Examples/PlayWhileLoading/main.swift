// A sound that is played while it is downloaded, from any second on.
//
//     PlayWhileLoading URL FOLDER [SECOND]
//
// It reads the head of a WAV file (PCM, 16 bits), and then the samples from that second on. They are fetched first, and the rest of
// the file follows. In place of a loudspeaker, it prints the level of each second. The file is kept, and a second run plays it from
// the disk. Exit status: 0 when the file is there.

import FKCore
import FKMiddleware
import Foundation

/// What a player has to know about the file.
struct Sound {
    struct Unknown: Error, CustomStringConvertible {
        let description = "this is no WAV file with 16 bits"
    }

    var channels: Int
    /// Samples a second.
    var rate: Int
    /// The offset of the first sample.
    var start: Int64

    var bytesPerSecond: Int { rate * channels * 2 }

    /// Reads the chunks in front of the samples.
    init(of task: DownloadTask) async throws {
        func number(_ data: Data, _ offset: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { $0 | Int(data[data.startIndex + offset + $1]) << (8 * $1) }
        }
        let head = try await task.read(at: 0, count: 12)
        guard head.count == 12, head.starts(with: Data("RIFF".utf8)), head.suffix(4) == Data("WAVE".utf8) else {
            throw Unknown()
        }
        var offset: Int64 = 12
        var format: (channels: Int, rate: Int)?
        while true {
            let chunk = try await task.read(at: offset, count: 8)
            guard chunk.count == 8 else { throw Unknown() }
            let name = String(decoding: chunk.prefix(4), as: UTF8.self)
            if name == "data", let format {
                (channels, rate, start) = (format.channels, format.rate, offset + 8)
                return
            }
            if name == "fmt " {
                let fields = try await task.read(at: offset + 8, count: 16)
                guard fields.count == 16, number(fields, 0, 2) == 1, number(fields, 14, 2) == 16 else {
                    throw Unknown()
                }
                format = (max(1, number(fields, 2, 2)), max(1, number(fields, 4, 4)))
            }
            let size = number(chunk, 4, 4)
            offset += 8 + Int64(size + size % 2)
        }
    }
}

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count >= 2, let url = arguments.first, let second = Int(arguments.dropFirst(2).first ?? "0") else {
    print("usage: PlayWhileLoading URL FOLDER [SECOND]")
    exit(2)
}
let folder = URL(fileURLWithPath: arguments[arguments.startIndex + 1])
do {
    try await withDownloader(Configure(workPath: folder.appendingPathComponent(".work"))) { downloader in
        let task = try await downloader.add(url, to: folder)
        let sound = try await Sound(of: task)
        print("sound    \(sound.channels) channels, \(sound.rate) Hz")
        var played = second
        var samples = Data()
        for try await chunk in task.bytes(from: sound.start + Int64(second * sound.bytesPerSecond)) {
            samples += chunk
            while samples.count >= sound.bytesPerSecond {
                let now = Data(samples.prefix(sound.bytesPerSecond))
                samples = Data(samples.dropFirst(sound.bytesPerSecond))
                let peak = stride(from: 0, to: now.count - 1, by: 2).reduce(0) { peak, offset in
                    max(peak, abs(Int(Int16(bitPattern: UInt16(now[offset]) | UInt16(now[offset + 1]) << 8))))
                }
                print("second \(played)  level \(peak * 100 / 32_768) %")
                played += 1
            }
        }
        print("complete \(try await task.file.path)")
    }
} catch {
    print("failed: \(error)")
    exit(1)
}
