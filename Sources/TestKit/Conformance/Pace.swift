import Glibc

/// How much of the time that passes a program has that wants to run all the while, for want of a processor of its own.
///
/// Deadlines and spans in which something must have happened are measured in this, so that they are the same demand on a
/// machine that does nothing else as on one with two processors and twenty programs on them. Where there is a processor for
/// everybody, it is the time on the clock; that it never is slower than an eighth of that, ends what will never happen.
///
/// A test that waits calls `advance` repeatedly. Nigh itself never uses it, and measures time by the clock.
package final class Pace {
    /// How many times as long as on an idle machine something may take.
    package static let slowest = 8

    /// The time had so far.
    package private(set) var spent = Duration.zero

    private let wanted: () -> Int
    private let processors: Int
    private var before: ContinuousClock.Instant

    /// Begins now. `wanted` says how many threads of all the machine want a processor now, whoever asks among them.
    package init(
        from start: ContinuousClock.Instant = .now,
        processors: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))),
        wanted: @escaping () -> Int = Pace.runnable
    ) {
        before = start
        self.processors = processors
        self.wanted = wanted
    }

    /// Takes in that it is `now`. The more often it is called, the truer is what it says.
    package func advance(to now: ContinuousClock.Instant = .now) {
        // Whoever asks waits for nobody.
        let others = max(wanted() - 1, processors)
        let passed = now - before
        before = now
        spent += max(passed * processors / others, passed / Self.slowest)
    }

    /// How many threads want a processor, by the fourth word of /proc/loadavg, as `3/412`; one where that cannot be read.
    package static func runnable() -> Int {
        let descriptor = open("/proc/loadavg", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 1 }
        defer { close(descriptor) }
        let text = withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { room in
            let count = read(descriptor, room.baseAddress, room.count)
            return String(decoding: room[..<max(0, count)], as: UTF8.self)
        }
        let words = text.split(separator: " ")
        guard words.count > 3, let count = words[3].split(separator: "/").first else { return 1 }
        return Int(count) ?? 1
    }
}
