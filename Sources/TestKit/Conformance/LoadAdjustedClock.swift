import Glibc

/// Measures time by the share of a processor that a busy thread gets on a loaded machine.
///
/// The deadlines and time limits of tests are measured in this. So they demand the same on an idle machine as on one
/// with two processors and twenty running programs. While there is a processor for every thread, it is the time on the
/// clock. It never runs slower than an eighth of the clock while it is asked, so a wait for something that never
/// happens ends.
///
/// A test that waits calls `advance` repeatedly. Nigh itself never uses it, and measures time by the clock.
package final class LoadAdjustedClock {
    /// How many times as long as on an idle machine something may take.
    package static let maximumSlowdown = 8

    /// The longest time that counts between two calls of `advance`. A caller that was away for longer had no processor
    /// itself, and what it waits for probably had none either.
    private static let longestStep = Duration.seconds(1)

    /// The time measured so far.
    package private(set) var elapsed = Duration.zero

    private let runnableThreads: () -> Int
    private let processors: Int
    private var lastAdvance: ContinuousClock.Instant

    /// Starts measuring at `start`. `runnableThreads` returns how many threads on the whole machine want a processor
    /// now, including the calling one.
    package init(
        from start: ContinuousClock.Instant = .now,
        processors: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))),
        runnableThreads: @escaping () -> Int = LoadAdjustedClock.runnableThreadCount
    ) {
        lastAdvance = start
        self.processors = processors
        self.runnableThreads = runnableThreads
    }

    /// Adds the time from the last call until `now`. The more often it is called, the more accurate is `elapsed`.
    package func advance(to now: ContinuousClock.Instant = .now) {
        // The calling thread is counted too, but only waits.
        let others = max(runnableThreads() - 1, processors)
        let interval = min(now - lastAdvance, Self.longestStep)
        lastAdvance = now
        elapsed += max(interval * processors / others, interval / Self.maximumSlowdown)
    }

    /// Returns how many threads want a processor: the number before the slash in the fourth word of /proc/loadavg, such
    /// as `3/412`; 1 if that cannot be read.
    package static func runnableThreadCount() -> Int {
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
