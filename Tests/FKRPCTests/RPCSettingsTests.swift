import TestSupport
import Testing

@testable import FKRPC

@Suite("Settings over the RPC")
struct RPCSettingsTests {
    @Test("settings are shown, changed together, and those that are left out stay") func change() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let before = try await fixture.call("fk.settings")
        #expect(before["jobs"] == 3 && before["connections"] == .null && before["daily"] == [], "\(before)")
        #expect(before["folder"] == .string(fixture.downloads))
        let sub = fixture.downloads + "/sub"
        var after = try await fixture.call(
            "fk.settings", .members(["jobs": 9, "connections": 4, "folder": "sub", "rate": 5_000]))
        #expect(after["jobs"] == 9 && after["connections"] == 4 && after["rate"] == 5_000 && after["rateNow"] == 5_000)
        #expect(after["folder"] == .string(sub))
        #expect(await fixture.downloader.configure.maxAction == 9)
        #expect(await fixture.downloader.configure.connections == .fixed(4))
        #expect(try await fixture.call("aria2.getGlobalOption")["dir"] == .string(sub))
        after = try await fixture.call("fk.settings", .members(["connections": .null, "rate": .null]))
        #expect(after["jobs"] == 9 && after["connections"] == .null && after["rate"] == .null)
        #expect(await fixture.downloader.configure.connections == .automatic)
    }

    @Test("a change of the limit keeps the times of the day, and one of these keeps the limit") func daily()
        async throws
    {
        let fixture = try await RPCFixture(isActive: false)
        let windows = JSON.array([
            .members(["time": "8:00-18:00", "rate": 1_000]), .members(["time": "18:00-08:00", "rate": 2_000]),
        ])
        var shown = try await fixture.call("fk.settings", .members(["daily": windows]))
        #expect(shown["rate"] == .null && shown["daily"]?.array?.map { $0["time"] } == ["08:00-18:00", "18:00-08:00"])
        // One of the two contains every minute of a day.
        #expect(shown["rateNow"] == 1_000 || shown["rateNow"] == 2_000, "\(shown)")
        #expect(shown["window"] != .null)
        shown = try await fixture.call("fk.settings", .members(["rate": 77]))
        #expect(shown["rate"] == 77 && shown["daily"]?.array?.count == 2)
        shown = try await fixture.call(
            "fk.settings", .members(["daily": [.members(["time": "22:00-24:00", "rate": .null])]]))
        let window = shown["daily"]?.array?.first
        #expect(shown["rate"] == 77 && shown["daily"]?.array?.count == 1, "\(shown)")
        #expect(window?["time"] == "22:00-24:00" && window?["rate"] == .null, "\(shown)")
        #expect(try await fixture.call("fk.settings", .members(["daily": []]))["rateNow"] == 77)
        // As on the command line.
        _ = try await fixture.call("fk.settings", .members(["daily": windows]))
        #expect(try await fixture.call("fk.limit", .members(["rate": 5])) == .members(["rate": 5]))
        #expect(try await fixture.call("fk.settings")["daily"] == [])
    }

    @Test(
        "wrong settings are named, and nothing is changed",
        arguments: [
            (#"{"jbos":1}"#, "no member jbos"), (#"{"jobs":0}"#, "from 1 to 256"), (#"{"jobs":257}"#, "from 1 to 256"),
            (#"{"jobs":null}"#, "jobs is a number"), (#"{"jobs":"3"}"#, "a whole number"),
            (#"{"connections":0}"#, "from 1 to 256"), (#"{"connections":257}"#, "from 0 to 256"),
            (#"{"folder":"/etc"}"#, "/etc is not allowed"), (#"{"folder":5}"#, "a text"),
            (#"{"rate":-1}"#, "rate must be"), (#"{"daily":{}}"#, "an array"), (#"{"daily":[1]}"#, "is an array of"),
            (#"{"daily":[{"time":"8-18"}]}"#, "'8-18' is no time"), (#"{"daily":[{"rate":1}]}"#, "is an array of"),
            (#"{"daily":[{"time":"08:00-18:00"}]}"#, "is an array of"),
            (#"{"daily":[{"time":"08:00-18:00","rate":-1}]}"#, "is an array of"),
            (#"{"daily":[{"time":"08:00-18:00","rate":1,"x":1}]}"#, "is an array of"),
            (#"{"daily":[{"time":"08:00-18:00","rate":1},{"time":"8:00-18:00","rate":2}]}"#, "there twice"),
        ]) func faults(members: String, reason: String) async throws
    {
        let fixture = try await RPCFixture(isActive: false)
        let all = #"{"jobs":7,"rate":70,"# + members.dropFirst()
        let before = try await fixture.call("fk.settings")
        for params in [members, all] {
            let answer = try await fixture.send(#"{"id":1,"method":"fk.settings","params":[\#(params)]}"#)
            #expect(answer.status == 400)
            #expect(
                answer.json["error"]?["message"]?.string?.contains(reason) == true || params == all, "\(answer.json)")
        }
        #expect(try await fixture.call("fk.settings") == before)
    }

    @Test("a limit with more windows than are stored is refused as a whole") func tooMany() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let windows = (0..<49).map { minute in
            JSON.members(["time": .string("00:\(minute < 10 ? "0" : "")\(minute)-12:00"), "rate": 1])
        }
        let answer = try await fixture.call("fk.settings", .members(["rate": 9, "daily": .array(windows)]))
        #expect(answer["message"]?.string?.contains("at most 48") == true, "\(answer)")
        #expect(try await fixture.call("fk.settings")["rate"] == .null)
    }

    @Test("a verb for many tasks answers with numbers if they are enough") func brief() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let urls = (0..<5).map { JSON.string("http://h/\($0)") }
        _ = try await fixture.call("fk.add", .members(["urls": .array(urls), "barrel": "b"]))
        var answer = try await fixture.call("fk.suspend", .members(["all": true, "brief": true]))
        #expect(answer["applied"] == 5 && answer["unchanged"] == 0 && answer["note"] == .null, "\(answer)")
        answer = try await fixture.call("fk.suspend", .members(["barrel": "b", "brief": true]))
        #expect(answer["applied"] == 0 && answer["unchanged"] == 5)
        #expect(answer["note"]?.string?.contains("suspend") == true, "\(answer)")
    }
}
