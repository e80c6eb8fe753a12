#if canImport(CLibcurl)
    import Foundation
    import Testing

    @testable import FKCore
    @testable import FKTransport

    @Suite("Sockets and the wake signal")
    struct SocketTests {
        /// A pipe whose ends are closed with it.
        private final class Pipe {
            let reader: Int32
            let writer: Int32

            init() throws {
                var ends: [Int32] = [-1, -1]
                try #require(pipe(&ends) == 0)
                (reader, writer) = (ends[0], ends[1])
            }

            deinit {
                close(reader)
                close(writer)
            }

            func fill() { _ = write(writer, "x", 1) }
        }

        @Test("a wait returns the sockets with events only, and each of them once")
        func ready() throws {
            let signal = try #require(WakeSignal())
            var set = SocketSet(signal: signal.descriptor)
            let pipes = try (0..<40).map { _ in try Pipe() }
            for pipe in pipes { set.watch(pipe.reader, Int16(POLLIN)) }
            for index in [3, 39, 0] { pipes[index].fill() }
            let isWoken = set.wait(milliseconds: -1)
            #expect(!isWoken)
            let ready = set.drainReady()
            #expect(Set(ready.map(\.socket)) == Set([0, 3, 39].map { pipes[$0].reader }))
            #expect(ready.allSatisfy { $0.events & Int16(POLLIN) != 0 })
            #expect(set.drainReady().isEmpty)
        }

        @Test("a forgotten socket has no events, and the others keep theirs, in any order of forgetting")
        func forgets() throws {
            let signal = try #require(WakeSignal())
            let pipes = try (0..<6).map { _ in try Pipe() }
            pipes.forEach { $0.fill() }
            for first in 0..<6 {
                for second in 0..<6 where second != first {
                    var set = SocketSet(signal: signal.descriptor)
                    for pipe in pipes { set.watch(pipe.reader, Int16(POLLIN)) }
                    set.forget(pipes[first].reader)
                    set.forget(pipes[second].reader)
                    set.forget(pipes[second].reader)
                    #expect(set.count == 4 && !set.contains(pipes[first].reader))
                    _ = set.wait(milliseconds: -1)
                    let expected = Set((0..<6).filter { $0 != first && $0 != second }.map { pipes[$0].reader })
                    #expect(Set(set.drainReady().map(\.socket)) == expected)
                    // A descriptor may come back as another socket.
                    set.watch(pipes[first].reader, Int16(POLLIN))
                    _ = set.wait(milliseconds: -1)
                    #expect(set.drainReady().count == 5)
                }
            }
        }

        @Test("the events of a socket are those asked for last")
        func events() throws {
            let signal = try #require(WakeSignal())
            var set = SocketSet(signal: signal.descriptor)
            let pipe = try Pipe()
            set.watch(pipe.writer, Int16(POLLOUT))
            _ = set.wait(milliseconds: -1)
            #expect(set.drainReady().map(\.events) == [Int16(POLLOUT)])
            set.watch(pipe.writer, Int16(POLLIN))
            _ = set.wait(milliseconds: 0)
            #expect(set.drainReady().isEmpty && set.count == 1)
        }

        @Test("a signal ends one wait, however often it was given, and is kept until then")
        func signals() throws {
            let signal = try #require(WakeSignal())
            var set = SocketSet(signal: signal.descriptor)
            for _ in 0..<5 { signal.give() }
            let first = set.wait(milliseconds: -1)
            signal.drain()
            let second = set.wait(milliseconds: 0)
            #expect(first && !second)
            signal.give()
            let third = set.wait(milliseconds: -1)
            #expect(third)
            #expect(fcntl(signal.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        }

        @Test("the address of a socket is read as text with its port")
        func address() {
            func read<Address>(_ address: Address) -> NumericAddress? {
                withUnsafeBytes(of: address) { bytes in
                    bytes.baseAddress.flatMap { NumericAddress($0.assumingMemoryBound(to: sockaddr.self)) }
                }
            }
            var four = sockaddr_in()
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = UInt16(8080).bigEndian
            inet_pton(AF_INET, "10.1.2.3", &four.sin_addr)
            #expect(read(four)?.text == "10.1.2.3" && read(four)?.port == 8080)
            var six = sockaddr_in6()
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = UInt16(443).bigEndian
            inet_pton(AF_INET6, "fe80::1", &six.sin6_addr)
            #expect(read(six)?.text == "fe80::1" && read(six)?.port == 443)
            four.sin_family = sa_family_t(AF_UNIX)
            #expect(read(four) == nil)
        }
    }
#endif
