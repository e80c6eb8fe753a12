// The same as floor.c in Swift, and what a task with a record costs in it: an id by SHA-256, a description, a record that is
// written as JSON three times and read once, the fields of the head as strings. No queue, no rules, no middlewares, no reports,
// one thread. What fk takes beyond this is fk's own; what this takes beyond floor.c is the price of such records in Swift.
//
// floor LIST: downloads the URLs of the list, one a line, into the current folder.

import CLibcrypto
import CLibcurl
import CSystem
import Glibc

/// What an info file has of a task.
struct Record {
    var id: [UInt8]
    var url: String
    var folder: String
    var number: Int
    var state = "idle"
    var attempts = 0
    var expected: Int?
    var received = 0
    var partName: String?
    var path: String?
    var etag: String?
    var lastModified: String?
    var fields: [(name: String, value: String)] = []
    var created: Int
    var finished: Int?

    /// Writes it as an info file's slot: generation, length and checksum, and then the JSON.
    func write(_ text: inout Text) {
        text.end = 16
        text.raw("{\"id\":")
        text.string(Record.hex(id))
        text.raw(",\"task\":{\"url\":")
        text.string(url)
        text.raw(",\"mirrors\":[],\"directory\":")
        text.string(folder)
        text.raw(",\"type\":\"background\",\"priority\":0,\"attributes\":{},\"options\":{}},\"number\":")
        text.number(number)
        text.raw(",\"state\":")
        text.string(state)
        text.raw(",\"ranges\":[{\"start\":0,\"position\":")
        text.number(received)
        text.raw("}],\"attempts\":")
        text.number(attempts)
        for (key, value) in [("expected", expected), ("created", created), ("finished", finished)] {
            guard let value else { continue }
            text.key(key)
            text.number(value)
        }
        for (key, value) in [("etag", etag), ("lastModified", lastModified), ("partName", partName), ("path", path)] {
            guard let value else { continue }
            text.key(key)
            text.string(value)
        }
        text.raw(",\"fields\":[")
        for (index, field) in fields.enumerated() {
            text.raw(index == 0 ? "{\"name\":" : ",{\"name\":")
            text.string(field.name)
            text.raw(",\"value\":")
            text.string(field.value)
            text.raw("}")
        }
        text.raw("]}")
        text.seal()
    }

    /// Finds the values of a text that `write` made, by their places.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Record? {
        var parts: [String] = []
        var begin = 0
        for (index, byte) in bytes.enumerated() where byte == 0x22 {
            if begin > 0 { parts.append(String(decoding: bytes[begin..<index], as: UTF8.self)) }
            begin = begin > 0 ? 0 : index + 1
        }
        guard parts.count > 6, parts[0] == "id", parts[3] == "url", parts[6] == "directory" else { return nil }
        return Record(id: Array(parts[1].utf8), url: parts[4], folder: parts[7], number: 0, created: 0)
    }

    static func hex(_ bytes: [UInt8]) -> String {
        String(unsafeUninitializedCapacity: 64) { text in
            for (index, byte) in bytes.prefix(32).enumerated() {
                text[2 * index] = digit(byte >> 4)
                text[2 * index + 1] = digit(byte & 15)
            }
            return 64
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}

/// Memory for one slot.
struct Text {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 8_192, alignment: 8)
    var end = 16

    mutating func raw(_ text: StaticString) {
        (memory.baseAddress! + end).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        end += text.utf8CodeUnitCount
    }

    mutating func key(_ name: String) {
        raw(",")
        string(name)
        raw(":")
    }

    mutating func string(_ text: String) {
        memory[end] = 0x22
        end += 1
        for byte in text.utf8 {
            if byte < 0x20 || byte == 0x22 || byte == 0x5c { exit(1) }
            memory[end] = byte
            end += 1
        }
        memory[end] = 0x22
        end += 1
    }

    mutating func number(_ value: Int) {
        var digits = 1
        var rest = value
        while rest >= 10 { (rest, digits) = (rest / 10, digits + 1) }
        rest = value
        for place in stride(from: end + digits - 1, through: end, by: -1) {
            memory[place] = 0x30 + UInt8(rest % 10)
            rest /= 10
        }
        end += digits
    }

    mutating func seal() {
        memory.storeBytes(of: UInt32(end - 16), toByteOffset: 8, as: UInt32.self)
        memory.storeBytes(of: fk_crc32c(~0, memory.baseAddress! + 16, end - 16), toByteOffset: 12, as: UInt32.self)
    }

    func put(_ descriptor: Int32, _ offset: off_t) {
        if pwrite(descriptor, memory.baseAddress!, end, offset) != end { exit(1) }
    }
}

/// The headers that Swift imports do not have it.
let renameAt2 = unsafeBitCast(
    dlsym(nil, "renameat2"),
    to: (@convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32).self)

/// One handle with the file that it fetches.
final class Transfer {
    let easy = curl_easy_init()!
    var record = Record(id: [], url: "", folder: "", number: 0, created: 0)
    var name = ""
    var info: Int32 = -1
    var part: Int32 = -1
    var inode: ino_t = 0
    var position: off_t = 0

    func begin(_ path: String, _ folder: Int32, _ multi: UnsafeMutableRawPointer) {
        info = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
        let read = withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
            let count = pread(info, buffer.baseAddress!, 4_096, 0)
            return count > 80 ? Record.read(UnsafeRawBufferPointer(rebasing: buffer[80..<count])) : nil
        }
        guard let read else { exit(1) }
        record = read
        record.state = "action"
        record.attempts += 1
        name = String(record.url[record.url.index(after: record.url.lastIndex(of: "/")!)...])
        record.partName = ".\(name).\(record.number).part"
        part = openat(folder, record.partName!, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        var status = stat()
        guard fstat(part, &status) == 0 else { exit(1) }
        (inode, position) = (status.st_ino, 0)
        _ = record.url.withCString { fk_easy_set_string(easy, CURLOPT_URL, $0) }
        curl_multi_add_handle(multi, easy)
    }

    func header(_ line: UnsafeRawBufferPointer) {
        guard let colon = line.firstIndex(of: 0x3a), line.count > colon + 3 else { return }
        let name = String(decoding: line[..<colon], as: UTF8.self)
        let value = String(decoding: line[(colon + 2)..<(line.count - 2)], as: UTF8.self)
        switch name.utf8.count {
        case 4 where name == "ETag": record.etag = value.filter { $0 != "\"" }
        case 13 where name == "Last-Modified": record.lastModified = value
        case 14 where name == "Content-Length": record.expected = Int(value)
        default: record.fields.append((name, value))
        }
    }

    func body(_ bytes: UnsafeRawBufferPointer) {
        if pwrite(part, bytes.baseAddress!, bytes.count, position) != bytes.count { exit(1) }
        position += off_t(bytes.count)
    }

    func end(_ folder: Int32, _ multi: UnsafeMutableRawPointer, _ text: inout Text) {
        curl_multi_remove_handle(multi, easy)
        var status = stat()
        guard fstatat(folder, record.partName!, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_ino == inode,
            Int(position) == record.expected
        else { exit(1) }
        _ = name.withCString { fsetxattr(part, "user.fkdownloader.task", $0, strlen($0), 0) }
        record.state = "complete"
        record.received = Int(position)
        record.finished = time(nil)
        record.path = "\(record.folder)/\(name)"
        record.write(&text)
        text.put(info, 2_048)
        close(info)
        // renameat2 with RENAME_NOREPLACE.
        if record.partName!.withCString({ old in name.withCString { renameAt2(folder, old, folder, $0, 1) } }) != 0 {
            exit(1)
        }
        close(part)
    }
}

guard CommandLine.arguments.count == 2, let list = fopen(CommandLine.arguments[1], "r") else { exit(2) }
var urls: [String] = []
var line = [CChar](repeating: 0, count: 2_048)
while fgets(&line, 2_048, list) != nil { urls.append(String(String(cString: line).dropLast())) }
let folder = open(".", O_RDONLY | O_DIRECTORY)
let folderPath = String(cString: getcwd(nil, 0))
mkdir(".floor", 0o700)
for number in 0..<256 { mkdir(".floor/\(number)", 0o700) }
var text = Text()
var paths: [String] = []
for (number, url) in urls.enumerated() {
    var id = [UInt8](repeating: 0, count: 32)
    var url = url
    _ = url.withUTF8 { EVP_Digest($0.baseAddress, $0.count, &id, nil, EVP_sha256(), nil) }
    let path = ".floor/\(id[0])/\(Record.hex(id)).info"
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    Record(id: id, url: url, folder: folderPath, number: number, created: time(nil)).write(&text)
    text.put(file, 64)
    close(file)
    paths.append(path)
}
curl_global_init(Int(CURL_GLOBAL_DEFAULT))
let multi = curl_multi_init()!
var next = 0
var left = 0
let transfers = (0..<min(16, urls.count)).map { _ in Transfer() }
func begin(_ transfer: Transfer) {
    transfer.begin(paths[next], folder, multi)
    next += 1
}
for transfer in transfers {
    let context = Unmanaged.passUnretained(transfer).toOpaque()
    fk_easy_set_long(transfer.easy, CURLOPT_BUFFERSIZE, 512 << 10)
    fk_easy_set_pointer(transfer.easy, CURLOPT_WRITEDATA, context)
    fk_easy_set_pointer(transfer.easy, CURLOPT_HEADERDATA, context)
    fk_easy_set_pointer(transfer.easy, CURLOPT_PRIVATE, context)
    fk_easy_set_data_callback(transfer.easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue().body(
            UnsafeRawBufferPointer(start: bytes, count: size * count))
        return size * count
    }
    fk_easy_set_data_callback(transfer.easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue().header(
            UnsafeRawBufferPointer(start: bytes, count: size * count))
        return size * count
    }
    begin(transfer)
    left += 1
}
while left > 0 {
    var running: Int32 = 0
    var messages: Int32 = 0
    curl_multi_perform(multi, &running)
    while let message = curl_multi_info_read(multi, &messages) {
        guard message.pointee.msg == CURLMSG_DONE, message.pointee.data.result == CURLE_OK else { exit(1) }
        var context: UnsafeMutablePointer<CChar>?
        fk_easy_get_pointer(message.pointee.easy_handle, CURLINFO_PRIVATE, &context)
        let transfer = Unmanaged<Transfer>.fromOpaque(UnsafeRawPointer(context!)).takeUnretainedValue()
        transfer.end(folder, multi, &text)
        if next < urls.count { begin(transfer) } else { left -= 1 }
    }
    if left > 0 { curl_multi_poll(multi, nil, 0, 1_000, nil) }
}
