import TestSupport
import Testing

private let second: Int64 = 1_000_000_000

/// Sends pieces of `size` as fast as the bucket lets it for so many seconds of a made clock; the bytes that passed.
private func send(_ bucket: inout TokenBucket, size: Int, from: Int64 = 0, seconds: Int64) -> Int64 {
    var now = from
    var passed: Int64 = 0
    while now < from + seconds * second {
        if let wait = bucket.spend(size, now: now) {
            now += Int64(wait * 1e9) + 1
        } else {
            passed += Int64(size)
        }
    }
    return passed
}

/// A value that expectations can change: their macros cannot call mutating functions.
private final class Shared {
    var value: TokenBucket
    init(_ value: TokenBucket) { self.value = value }
    func take(_ n: Int, now: Int64) -> Double? { value.spend(n, now: now) }
}

@Suite("Token bucket")
struct TokenBucketTests {
    @Test(
        "keeps the average whatever the size of the pieces",
        arguments: [Int64(20_000), 100_000, 1 << 20, 50 << 20, 1 << 30], [8_192, 16_384, 65_536, 524_288])
    func average(rate: Int64, size: Int) {
        let seconds = min(100, max(1, 50_000 * Int64(size) / rate))
        let bucket = Shared(TokenBucket(rate: rate, now: 0))
        let passed = send(&bucket.value, size: size, seconds: seconds)
        #expect(passed <= rate * seconds + Int64(size) + bucket.value.burst)
        #expect(passed >= rate * seconds - 2 * Int64(size) - bucket.value.burst)
    }

    @Test("begins empty and fills to a burst only")
    func burst() {
        let bucket = Shared(TokenBucket(rate: 1 << 20, now: 0))
        #expect(bucket.value.burst == 104_857)
        #expect(bucket.take(1 << 10, now: 0) != nil)
        #expect(send(&bucket.value, size: 1 << 10, from: 1000 * second, seconds: 1) <= 1 << 20 + 104_857 + 1 << 10)
        #expect(TokenBucket(rate: 100, now: 0).burst == 64 << 10)
    }

    @Test("says how long to wait")
    func wait() throws {
        let bucket = Shared(TokenBucket(rate: 100_000, now: 0))
        let first = try #require(bucket.take(50_000, now: 0))
        #expect(abs(first - 0.5) < 1e-6)
        #expect(bucket.take(50_000, now: second / 2) == nil)
        // Larger than the bucket: lets it through when full, then waits for the debt as well.
        #expect(bucket.take(200_000, now: 2 * second) == nil)
        let debt = try #require(bucket.take(1, now: 2 * second))
        #expect(abs(debt - (200_000 - 65_536 + 1) / 100_000.0) < 1e-6)
    }

    @Test("without a rate everything passes", arguments: [nil, 0, -5] as [Int64?])
    func unlimited(rate: Int64?) {
        let bucket = Shared(TokenBucket(rate: rate, now: 0))
        #expect(bucket.value.rate == nil)
        for _ in 0..<100 { #expect(bucket.take(.max, now: 0) == nil) }
    }

    @Test("a new rate acts at once")
    func live() throws {
        let bucket = Shared(TokenBucket(rate: 1000, now: 0))
        #expect(try #require(bucket.take(10_000, now: 0)) == 10)
        bucket.value.setRate(10_000, now: 0)
        #expect(try #require(bucket.take(10_000, now: 0)) == 1)
        bucket.value.setRate(nil, now: 0)
        #expect(bucket.take(1 << 30, now: 0) == nil)
        // A debt from a high rate does not block a low one for ever.
        bucket.value.setRate(1 << 30, now: 0)
        #expect(bucket.take(1 << 30, now: second) == nil)
        bucket.value.setRate(65_536, now: second)
        #expect(try #require(bucket.take(1, now: second)) < 1.1)
    }

    @Test("a clock that goes back or jumps fills at most a bucket")
    func clock() {
        let bucket = Shared(TokenBucket(rate: 100_000, now: 10 * second))
        #expect(bucket.take(1000, now: 0) != nil)
        #expect(bucket.take(1000, now: .min) != nil)
        #expect(bucket.take(1000, now: .max) != nil)
        #expect(bucket.take(0, now: 0) == nil)
        let other = Shared(TokenBucket(rate: 100_000, now: 0))
        #expect(other.take(65_536, now: .max) == nil)
        #expect(other.take(1, now: .max) != nil)
    }
}

@Suite("Rate limiter")
struct RateLimiterTests {
    private func isWait(_ offer: FairShares.Offer) -> Bool { if case .wait = offer { true } else { false } }

    @Test("without a limit lets everything pass")
    func unlimited() {
        let limiter = RateLimiter(now: 0)
        #expect(limiter.rate == nil)
        #expect(limiter.offer(.max, to: 1, now: 0) == .bytes(.max))
        limiter.setRate(10, now: 0)
        #expect(limiter.rate == 10 && isWait(limiter.offer(20, to: 1, now: 0)))
        limiter.setRate(nil, now: 0)
        #expect(limiter.offer(.max, to: 1, now: 0) == .bytes(.max))
    }

    @Test("takes from all or from none, and as many as the least of them offers")
    func all() {
        let total = RateLimiter(rate: 100_000, now: 0)
        let task = RateLimiter(rate: 1_000, now: 0)
        #expect(isWait(RateLimiter.spend(10_000, from: [total, task], by: 1, now: second)))
        // Nothing of the refused bytes is missing from the total.
        #expect(RateLimiter.spend(65_536, from: [total], by: 1, now: second) == .bytes(65_536))
        #expect(RateLimiter.spend(10_000, from: [total, task], by: 1, now: 11 * second) == .bytes(10_000))
        #expect(RateLimiter.spend(10_000, from: [], by: 1, now: 0) == .bytes(10_000))
    }

    @Test("many threads together keep to it")
    func threads() async {
        let limiter = RateLimiter(rate: 1_000_000, now: 0)
        let passed = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<2_000).reduce(0) { sum, step in
                        let now = Int64(step) * 1_000_000
                        guard
                            case .bytes(let count) = RateLimiter.spend(
                                1_000, from: [limiter], by: UInt64(task), now: now)
                        else { return sum }
                        return sum + count
                    }
                }
            }
            return await group.reduce(0, +)
        }
        // Each thread counts through the same two seconds, and time that goes back for one fills nothing.
        #expect(passed <= 8 * 2_000_000 + 200_000)
    }
}

@Suite("Speed meter")
struct SpeedTests {
    @Test("of a steady flow is its rate from the second sample on", arguments: [Int64(1), 200, 1_000, 7_000])
    func steady(milliseconds: Int64) {
        var meter = SpeedMeter()
        #expect(meter.bytesPerSecond == 0)
        for step in 0..<50 {
            meter.add(time: Int64(step) * milliseconds * 1_000_000, bytes: Int64(step) * milliseconds * 1_000)
            if step > 0 { #expect(abs(meter.bytesPerSecond - 1e6) < 1) }
        }
    }

    @Test("follows a change within the window")
    func change() {
        var meter = SpeedMeter()
        var bytes: Int64 = 0
        for step in 0...20 {
            meter.add(time: Int64(step) * second, bytes: bytes)
            bytes += step < 10 ? 1000 : 0
        }
        #expect((50...250).contains(meter.bytesPerSecond))
        for step in 21...200 { meter.add(time: Int64(step) * second, bytes: bytes) }
        #expect(meter.bytesPerSecond < 1)
    }

    @Test("is never negative, whatever clock and counter do")
    func hostile() {
        var generator = SeededRandom(seed: 3)
        var meter = SpeedMeter()
        for _ in 0..<2_000 {
            meter.add(
                time: [Int64.min, .max, 0, 5, second].randomElement(using: &generator) ?? 0,
                bytes: [0, 5, 1 << 40, .max].randomElement(using: &generator) ?? 0)
            #expect(meter.bytesPerSecond >= 0 && meter.bytesPerSecond.isFinite)
        }
    }

    @Test("counts the bytes of two samples at one moment with the next")
    func sameTime() {
        var meter = SpeedMeter()
        meter.add(time: 0, bytes: 0)
        meter.add(time: 0, bytes: 500)
        meter.add(time: second, bytes: 1000)
        #expect(abs(meter.bytesPerSecond - 1000) < 0.001)
    }
}

@Suite("Byte sizes")
struct ByteSizeTests {
    @Test(
        "are read in powers of 1024",
        arguments: [
            ("0", 0), ("512", 512), ("512B", 512), ("1K", 1024), ("1k", 1024), ("10M", 10_485_760),
            ("10MB", 10_485_760), ("10MiB", 10_485_760), ("10mib", 10_485_760), ("1.5G", 1_610_612_736),
            ("2T", 2_199_023_255_552), ("0.5K", 512), ("1.0001K", 1024), ("9223372036854775807", .max),
            ("8191P", 9_222_246_136_947_933_184), ("007K", 7168),
        ] as [(String, Int64)])
    func parse(text: String, expected: Int64) throws {
        #expect(try Int64(byteSize: text) == expected)
    }

    @Test(
        "are nothing else",
        arguments: [
            "", "K", "M10", "-1", "+1", "1.5", "1.5B", ".5K", "1.K", "1..5K", "1.2.3K", "1 M", " 1M", "1M ", "1KK",
            "1X", "1e3", "0x10", "1iB", "1KiBs", "10M/s", "NaN", "inf", "٣K", "1,5M", "9223372036854775808", "8192P",
            "9999999999999T", "99999999999999999999999999",
        ])
    func wrong(text: String) {
        #expect { try Int64(byteSize: text) } throws: { ($0 as? DownloadError)?.code == .invalidArgument }
    }

    @Test(
        "are written with one digit and their true unit",
        arguments: [
            (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (12_897_485, "12.3 MiB"),
            (1_048_575, "1.0 MiB"), (1_048_524, "1023.9 KiB"), (1_048_525, "1.0 MiB"), (1_073_741_824, "1.0 GiB"),
            (1_099_511_627_776, "1.0 TiB"), (1_125_899_906_842_624, "1.0 PiB"), (.max, "8192.0 PiB"), (-5, "0 B"),
        ] as [(Int64, String)])
    func format(bytes: Int64, expected: String) {
        #expect(ByteSize.format(bytes) == expected)
    }
}
