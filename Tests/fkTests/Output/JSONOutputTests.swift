import TestSupport
import Testing

@testable import FKCore
@testable import FKModel
@testable import fk

@Suite("JSON output") struct JSONOutputTests {
    private func text(_ write: (JSONOutput) -> Void) throws -> String {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/out"
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
        write(JSONOutput(OutputStream(descriptor)))
        close(descriptor)
        return try String(contentsOfFile: path, encoding: .utf8)
    }

    private func record(_ number: UInt64 = 1) -> TaskRecord {
        TaskRecord(
            task: TaskDescription(url: "http://user:secret@a/b/\(number)?token=x"), number: number,
            created: Date(timeIntervalSince1970: 1_700_000_000.25))
    }

    @Test("A task: all keys in the documented order, unknown ones null, slashes as they are") func task() throws {
        let record = record()
        let shown = try text { $0.document(json: TaskDocument.json(record)) }
        #expect(
            shown == """
                {
                  "id": "\(record.id.hex)",
                  "url": "\(record.task.url.masked)",
                  "state": "idle",
                  "name": "1",
                  "format": "",
                  "mimeType": null,
                  "received": 0,
                  "expected": null,
                  "percentage": null,
                  "path": null,
                  "synced": null,
                  "attempts": 0,
                  "bytesPerSecond": null,
                  "barrels": [],
                  "error": null,
                  "waiting": null,
                  "directory": null,
                  "fileName": null,
                  "checksum": null,
                  "list": null,
                  "signedBy": null,
                  "contentEncoding": null,
                  "attributes": {},
                  "insecure": false,
                  "created": "2023-11-14T22:13:20.250Z",
                  "started": null,
                  "finished": null,
                  "lastUsed": null
                }

                """)
        #expect(!shown.contains("secret"))
    }

    @Test("A task tells name, format, type and percentage, as far as they are known; an export does not")
    func recordFields() throws {
        var record = record()
        func fields(_ record: TaskRecord, isExport: Bool = false) throws -> [String] {
            let bytes = TaskDocument.json(record, isExport: isExport)
            let value = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
            return ["name", "format", "mimeType", "percentage"].map { name in value[name].map { "\($0)" } ?? "-" }
        }
        #expect(try fields(record) == ["1", "", "<null>", "<null>"])
        record.task.fileName = "A b.TAR.GZ"
        #expect(try fields(record) == ["A b.TAR.GZ", "gz", "<null>", "<null>"])
        #expect(try fields(record, isExport: true) == ["-", "-", "-", "-"])
    }

    @Test("A task with everything: types as documented") func fullTask() throws {
        var record = record()
        record.task.directory = "/d/\"\\\n\u{1b}\u{202e}\u{85}é"
        record.task.attributes = ["k/1": "v\n", "ä": ""]
        record.task.options.checksum = try Checksum(.md5, hex: String(repeating: "a0", count: 16))
        record.task.options.insecure = true
        record.barrels = ["one", "two"]
        record.fail(DownloadError(.httpStatus, "The server answered 503.", status: 503, isRetryable: true))
        record.setWaiting(Waiting(.retry, until: Date(timeIntervalSince1970: 1_700_000_001), host: "a", limit: 2))
        record.bytesPerSecond = 5
        let shown = try text { $0.document(json: TaskDocument.json(record)) }
        let hidden = shown.unicodeScalars.filter { $0 != "\n" && $0.isHidden }
        #expect(hidden.isEmpty)
        let value = try #require(try JSONSerialization.jsonObject(with: Data(shown.utf8)) as? NSDictionary)
        #expect(value["directory"] as? String == record.task.directory)
        #expect(value["attributes"] as? [String: String] == record.task.attributes)
        #expect(value["checksum"] as? String == "md5=" + String(repeating: "a0", count: 16))
        #expect(value["insecure"] as? Bool == true)
        #expect(value["barrels"] as? [String] == ["one", "two"])
        #expect(value["bytesPerSecond"] is NSNull, "nothing moves")
        let error = try #require(value["error"] as? [String: Any])
        #expect(Set(error.keys) == ["code", "message", "reason", "status", "retryable"])
        #expect(error["code"] as? String == "http-status")
        #expect(error["status"] as? Int == 503)
        #expect(error["retryable"] as? Bool == true)
        let waiting: NSDictionary = [
            "reason": "retry", "until": "2023-11-14T22:13:21.000Z", "host": "a", "limit": 2, "policy": NSNull(),
        ]
        #expect(value["waiting"] as? NSDictionary == waiting)
    }

    private static let stateEvents: [(RunEvent, String)] = [
        (
            .state(info(.action) { $0.attempts = 2 }),
            line(#""url":"http://a/?k=v","state":"action","time":"1970-01-01T00:00:00.500Z","attempt":2"#)
        ),
        (
            .state(info(.complete) { $0.path = "/d/a" }),
            line(#""url":"http://a/?k=v","state":"complete","time":"1970-01-01T00:00:00.500Z","path":"/d/a""#)
        ),
        (
            .state(
                info(.idle) { info in
                    info.attempts = 1
                    info.error = DownloadError(.httpStatus, "It answered 503.", status: 503, isRetryable: true)
                }, waiting: Waiting(.host, limit: 4)),
            line(
                #""url":"http://a/?k=v","state":"idle","time":"1970-01-01T00:00:00.500Z","attempt":1,"error":"#,
                #"{"code":"http-status","message":"It answered 503.","reason":null,"retryable":true,"#,
                #""status":503},"waiting":{"host":null,"limit":4,"policy":null,"reason":"host","until":null}"#)
        ),
        (
            .state(info(.action) { $0.error = DownloadError(.timeout, "of the attempt before") }),
            line(#""url":"http://a/?k=v","state":"action","time":"1970-01-01T00:00:00.500Z""#)
        ),
    ]

    private static let otherEvents: [(RunEvent, String)] = [
        (
            .progress(
                id: "1", url: "http://a/", bytes: ByteCount(received: 2, previousReceived: 1, expected: nil),
                bytesPerSecond: .infinity),
            line(
                #"{"event":"progress","id":"1","url":"http://a/","received":2,"previousReceived":1,"expected":null,"#,
                #""bytesPerSecond":1000000000000000,"time":"1970-01-01T00:00:00.500Z"}"#)
        ),
        (
            .barrel(
                name: "b\n", bytes: ByteCount(received: 2, expected: 3), isExpectedKnown: true, complete: 1,
                error: 0, total: 2),
            line(
                #"{"event":"barrel","name":"b\u000a","received":2,"expected":3,"complete":1,"error":0,"total":2,"#,
                #""isExpectedKnown":true,"time":"1970-01-01T00:00:00.500Z"}"#)
        ),
        (
            .summary(complete: 1, error: 2, suspend: 3, bytes: 4, seconds: 1.2504),
            line(
                #"{"event":"summary","complete":1,"error":2,"suspend":3,"bytes":4,"seconds":1.25,"#,
                #""time":"1970-01-01T00:00:00.500Z"}"#)
        ),
        (
            .summary(complete: 0, error: 0, suspend: 0, bytes: 0, seconds: 3),
            line(
                #"{"event":"summary","complete":0,"error":0,"suspend":0,"bytes":0,"seconds":3,"#,
                #""time":"1970-01-01T00:00:00.500Z"}"#)
        ),
    ]

    private static func line(_ parts: String...) -> String { parts.joined() }

    @Test("Events: one line each, members in the documented order", arguments: stateEvents + otherEvents)
    func events(event: RunEvent, line: String) throws {
        let time = Date(timeIntervalSince1970: 0.5)
        let start = line.hasPrefix("{") ? "" : #"{"event":"state","id":"\#(Self.id.hex)","#
        let end = line.hasPrefix("{") ? "" : "}"
        #expect(try text { JSONLines(output: $0.output).write(event, at: time) } == start + line + end + "\n")
    }

    private static let id = TaskID(url: "http://a/", destination: nil)

    private static func info(_ state: DownloadState, _ change: (inout DownloadInfo) -> Void) -> DownloadInfo {
        var info = DownloadInfo(id: id, url: "http://a/?k=v", state: state)
        change(&info)
        return info
    }

    @Test("Arrays are the same whether they are written in one block or many", arguments: [0, 1, 2, 256, 257, 5_000])
    func arrays(count: Int) throws {
        let numbers = Array(0..<count)
        let plain = try text { $0.array(numbers, isIndented: false) { Array("\($0)".utf8) } }
        #expect(plain == "[" + numbers.map(String.init).joined(separator: ",") + "]\n")
        let indented = try text { $0.array(numbers) { Array("{\"n\":\($0)}".utf8) } }
        let objects = numbers.map { "{\n    \"n\": \($0)\n  }" }.joined(separator: ",\n  ")
        #expect(indented == (count == 0 ? "[]\n" : "[\n  \(objects)\n]\n"))
    }

    @Test("A document with a list as its last member", arguments: [0, 2, 300]) func list(count: Int) throws {
        let records = (0..<count).map { record(UInt64($0)) }
        let shown = try text { output in
            var members = output.beginDocument(.members(["name": "a/b"]), "members")
            members.write(records, TaskDocument.json)
            members.end()
        }
        let value = try #require(try JSONSerialization.jsonObject(with: Data(shown.utf8)) as? [String: Any])
        #expect(value["name"] as? String == "a/b")
        let members = try #require(value["members"] as? [[String: Any]])
        #expect(members.compactMap { $0["id"] as? String } == records.map(\.id.hex))
        #expect(shown.hasPrefix("{\n  \"name\": \"a/b\",\n  \"members\": ["))
        #expect(shown.hasSuffix(count == 0 ? "[]\n}\n" : "    }\n  ]\n}\n"))
    }

    @Test(
        "The layout changes white space and nothing else",
        arguments: [
            #"{}"#, #"[]"#, #"[[],{}]"#, #"{"a":[1,-2.5e3,true,null,"x"],"b":{"c":"{[,:\"]} \\"}}"#,
            #"{ "a" : [ ] , "b" : { } }"#, #"{"é":"\u001b\n","x":"\#u{202e}\#u{e0041}\#u{2028}"}"#,
        ])
    func layout(json: String) throws {
        let original = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? NSObject
        for indent in [nil, 0, 4] {
            let shown = JSONLayout.text(Array(json.utf8), indent: indent)
            #expect(try JSONSerialization.jsonObject(with: Data(shown)) as? NSObject == original)
            let scalars = String(decoding: shown, as: UTF8.self).unicodeScalars
            #expect(scalars.filter { $0 != "\n" && $0.isHidden }.isEmpty)
            if indent == nil { #expect(!shown.contains(0x0a)) }
        }
    }

    @Test("A member that is unknown is null, or left out") func orNull() {
        let (number, text): (Int?, String?) = (1, nil)
        let members: KeyValuePairs<String, FKModel.JSON> = ["number": .init(number), "text": .init(text)]
        #expect(FKModel.JSON.members(members).bytes == Array(#"{"number":1,"text":null}"#.utf8))
        #expect(FKModel.JSON.members(members, omittingNull: true).bytes == Array(#"{"number":1}"#.utf8))
    }
}
