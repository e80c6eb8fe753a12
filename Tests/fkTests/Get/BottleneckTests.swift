import FKCore
import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("What limits a running task") struct BottleneckTests {
    private typealias Connection = Bottleneck.Measures.Connection

    /// A task with these parts, on a network that shows no limit.
    private func measures(_ rates: [Double], _ change: (inout Bottleneck.Measures) -> Void = { _ in })
        -> Bottleneck.Measures
    {
        var measures = Bottleneck.Measures()
        measures.rates = rates
        measures.processor = (0.1, 0)
        measures.diskWait = 0
        measures.pressure = 0
        measures.connections = rates.map { _ in
            Connection(roundTrip: 0.01, leastRoundTrip: 0.01, window: 10_000_000, packets: 1_000)
        }
        change(&measures)
        return measures
    }

    private func find(_ rates: [Double], _ change: (inout Bottleneck.Measures) -> Void = { _ in }) -> (
        Bottleneck.Kind, String
    ) {
        let found = Bottleneck.find(measures(rates, change))
        return (found.kind, found.text)
    }

    @Test("each cause is found by its figure, the nearest one first") func causes() {
        let kib = 1024.0
        var found = find([250 * kib, 260 * kib, 245 * kib, 255 * kib])
        #expect(
            found.0 == .server
                && found.1.hasPrefix("the server's cap for a connection: 4 connections have 255 KiB/s each"))
        found = find([250 * kib])
        #expect(
            found.0 == .server
                && found.1
                    == "the server: the only connection has 250 KiB/s; the network shows no limit, round trip 10.0 ms, no loss"
        )
        found = find([250 * kib]) {
            $0.connections![0].roundTrip = 0.05
            $0.connections![0].leastRoundTrip = 0.05
        }
        #expect(found.0 == .server && found.1.hasSuffix("round trip 50.0 ms, no loss; more connections (-x) may help"))
        found = find([250 * kib, 90 * kib]) { $0.connections = nil }
        #expect(found.0 == .server && found.1 == "the server: 2 connections have 340 KiB/s")
        found = find([250 * kib]) { $0.connections![0].disordered = 25 }
        #expect(found.0 == .network)
        #expect(found.1.contains("2.5% of the packets arrive behind a lost one, round trip 10.0 ms"))
        found = find([600 * kib]) {
            $0.connections![0] = Connection(roundTrip: 0.1, leastRoundTrip: 0.1, window: 65_536)
        }
        #expect(
            found.0 == .network
                && found.1.contains("a window of 64.0 KiB at a round trip of 100.0 ms is at most 640 KiB/s"))
        found = find([600 * kib]) { $0.connections![0].roundTrip = 0.2 }
        #expect(found.0 == .network && found.1.contains("200.0 ms, and 10.0 ms without load"))
        found = find([]) { $0.connections = [Connection()] }
        #expect(found.0 == .server && found.1.contains("no byte has arrived"))
        found = find([]) { $0.isUnanswered = true }
        #expect(found.0 == .server && found.1.hasPrefix("the server or the network: there is no answer yet"))
        found = find([]) { $0.connections = [Connection(unread: 70_000)] }
        #expect(found.0 == .unknown && found.1.contains("are not read yet"))
        found = find([250 * kib]) {
            $0.diskWait = 0.5; $0.pressure = 0.42
        }
        #expect(found.0 == .disk && found.1 == "the disk: a thread waits for it for 50% of the time; disk pressure 42%")
        found = find([]) { $0.isWhole = true }
        #expect(found.0 == .unknown && found.1.contains("every byte has arrived"))
        found = find([]) {
            $0.isWhole = true; $0.diskWait = 0.2
        }
        #expect(found.0 == .disk)
        found = find([250 * kib]) {
            $0.processor = (0.97, 0); $0.diskWait = 0.5
        }
        #expect(found.0 == .processor && found.1 == "the processor: a thread runs for 97% of the time")
        found = find([250 * kib]) { $0.processor = (0.1, 0.88) }
        #expect(found.0 == .processor && found.1.hasSuffix("10% of the time, and waits for a processor for 88%"))
        found = find([250 * kib]) {
            $0.processor = (0.97, 0)
            $0.limits = [
                .init(name: "fk limit", rate: 256 << 10, used: 250 * kib),
                .init(name: "other", rate: 1 << 30, used: 250 * kib),
            ]
        }
        #expect(found.0 == .limit && found.1 == "our own limit: fk limit of 256 KiB/s, 250 KiB/s used")
        found = find([1]) {
            $0.program = ("scan", 12); $0.limits = [.init(name: "x", rate: 1, used: 1)]
        }
        #expect(found.0 == .middleware && found.1.contains("scan has worked for 12s"))
        let system = Bottleneck.find(
            measures([]) {
                $0.connections = nil; $0.processor = nil; $0.diskWait = nil
            })
        #expect(system.kind == .server)
    }

    @Test("the rate of a server that sends in bursts is that between them")
    func bursts() {
        func rate(_ looks: (Double, Int64)...) -> Double {
            EngineProbe.rate(looks.map { (seconds: $0.0, bytes: $0.1) })
        }
        #expect(rate((0, 7), (0.5, 107), (0.75, 107), (1.5, 207), (2, 207)) == 100)
        #expect(rate((0, 0), (0.5, 50), (1, 100), (1.5, 150)) == 100)
        #expect(rate((0, 0), (1, 50), (2, 50)) == 25)
        #expect(rate((0, 0), (0.5, 10), (1, 20), (2.5, 20)) == 5, "it has stopped")
        #expect(rate((0, 5), (2, 5)) == 0)
        #expect(rate((0, 5)) == 0)
    }

    #if os(Linux)
        @Test("fk why names the program of a middleware that works on a task, and its end tells when and how often")
        func program() async throws {
            let sandbox = try Sandbox()
            let server = try FaultServer()
            server.serve("/a", [1, 2, 3])
            let go = "\(sandbox.files)/go"
            try await sandbox.fk(
                "middleware", "add", "--stage", "response", "--name", "scan", "--time-limit", "300", "--", "/bin/sh",
                "-c",
                "while [ ! -e \(go) ]; do sleep 0.1; done")
            let get = try sandbox.start("get", server.url("/a"))
            #expect(try await sandbox.record(server.url("/a")) { $0.state == .action } != nil)
            let reason = try await eventually {
                let document = try await sandbox.json("why", server.url("/a"))
                return document.text("limitedBy") == "middleware" ? document.text("reason") : nil
            }
            #expect(reason?.contains("limited by a middleware: ") == true, "\(reason ?? "")")
            #expect(reason?.contains("sh -c has worked for ") == true, "dash or sh: \(reason ?? "")")
            #expect(FileManager.default.createFile(atPath: go, contents: nil))
            _ = await get.end()
            let end = try await sandbox.fk("why", "a").output
            #expect(end.contains("complete: \(sandbox.files)/a, since 2"), "\(end)")
            #expect(end.contains(", after 1 attempt"))
        }
    #endif

    @Test("fk why names our own limit and a slow server of a running download")
    func real() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let body = Bytes.pattern(count: 4_000_000)
        server.serve("/a", body)
        let limited = try sandbox.start("get", "-x", "1", "--limit-rate", "100K", server.url("/a"))
        #expect(try await sandbox.record(server.url("/a")) { $0.received > 0 } != nil)
        func why(_ kind: String) async throws -> String? {
            // The first second may have a burst.
            try await eventually {
                let document = try await sandbox.json("why", "a")
                return document.text("limitedBy") == kind ? document.text("reason") : nil
            }
        }
        let reason = try await why("limit")
        #expect(
            reason?.contains("limited by our own limit: --limit-rate of 100 KiB/s") == true, "\(reason ?? "")")
        limited.signal(SIGINT)
        _ = await limited.end()
        let gate = Gate()
        server.serve("/b", body, stallingAt: 100_000, gate)
        let slow = try sandbox.start("get", "-x", "1", server.url("/b"))
        #expect(try await sandbox.record(server.url("/b")) { $0.received == 100_000 } != nil)
        let document = try await sandbox.json("why", "b")
        #expect(
            document.text("limitedBy") == "server" && document.text("reason")?.contains("no byte has arrived") == true)
        slow.kill()
        gate.open()
    }
}
