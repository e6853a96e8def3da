import Glibc

/// How long ago it was made.
struct Stopwatch {
    private let start = Self.now()

    var seconds: Double { Double(Self.now() - start) / 1e9 }

    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
