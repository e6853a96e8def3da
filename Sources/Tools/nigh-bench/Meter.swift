import CAllocationCounter
import Glibc
import NighCore

/// What one scenario has shown.
struct Measurement {
    /// Messages that arrived; round trips, where those are measured.
    var messages: Int
    var nanoseconds: Int64
    /// What all threads of the process have computed meanwhile: steadier than the time where others use the machine.
    var processorNanoseconds: Int64
    /// Blocks taken from the heap meanwhile, by everybody in the process.
    var allocations: UInt64
    /// Nanoseconds each, in ascending order; empty where round trips are not measured.
    var roundTrips: [UInt32] = []

    var perSecond: Double { Double(messages) * 1e9 / Double(nanoseconds) }

    func perMessage(_ total: some BinaryInteger) -> Double { Double(total) / Double(messages) }

    /// In microseconds; nil where round trips were not measured.
    func percentile(_ percent: Int) -> Double? {
        roundTrips.isEmpty ? nil : Double(roundTrips[roundTrips.count * percent / 100]) / 1_000
    }
}

/// Counts messages on the loop that receives them: through a warm-up, then until it has seen enough.
///
/// Every `step` messages it calls `onStep`, which is how a receiver sets off the next burst. `@unchecked Sendable`: what changes
/// is touched on the receiver's loop only, once the scenario has begun.
final class Meter: @unchecked Sendable {
    enum Until {
        case nanoseconds(Int64)
        case messages(Int)
    }

    /// The most round trips remembered; beyond it the oldest are overwritten.
    private static let samplesKept = 1 << 20

    private let step: Int
    private let warmUp: Int
    private let until: Until
    private let (results, result) = AsyncThrowingStream.makeStream(of: Measurement.self)
    private var onStep: @Sendable () -> Void = {}

    // Confined to one loop, and touched for each message: a check for overlapping access is worth more than it costs
    // anywhere else, but here it would be measured along.
    @exclusivity(unchecked) private(set) var isDone = false
    @exclusivity(unchecked) private var received = 0
    @exclusivity(unchecked) private var nextStep: Int
    private var startedAt: Int64?
    private var processorAtStart: Int64 = 0
    private var allocationsAtStart: UInt64 = 0
    private var receivedAtStart = 0
    @exclusivity(unchecked) private var samples: [UInt32] = []
    @exclusivity(unchecked) private var sampleCount = 0
    @exclusivity(unchecked) private var sentAt: Int64 = 0

    init(step: Int, warmUp: Int, until: Until, timesRoundTrips: Bool = false) {
        self.step = step
        self.warmUp = warmUp
        self.until = until
        nextStep = step
        if timesRoundTrips { samples = Array(repeating: 0, count: Self.samplesKept) }
    }

    /// To be called before the first message.
    func whenever(_ onStep: @escaping @Sendable () -> Void) { self.onStep = onStep }

    /// A message has come.
    @inline(__always)
    func count() {
        received &+= 1
        if received == nextStep { stepped() }
    }

    private func stepped() {
        guard !isDone else { return }
        nextStep &+= step
        onStep()
        if let startedAt {
            check(since: startedAt)
        } else if received >= warmUp {
            receivedAtStart = received
            sampleCount = 0
            allocationsAtStart = allocation_counter_value()
            processorAtStart = Self.clock(CLOCK_PROCESS_CPUTIME_ID)
            startedAt = Self.clock()
        }
    }

    private func check(since start: Int64) {
        let now = Self.clock()
        let allocations = allocation_counter_value() &- allocationsAtStart
        let messages = received - receivedAtStart
        switch until {
        case .messages(let enough): guard messages >= enough else { return }
        case .nanoseconds(let enough): guard now - start >= enough else { return }
        }
        isDone = true
        var measurement = Measurement(
            messages: messages, nanoseconds: now - start,
            processorNanoseconds: Self.clock(CLOCK_PROCESS_CPUTIME_ID) - processorAtStart,
            allocations: allocations)
        if !samples.isEmpty { measurement.roundTrips = samples.prefix(sampleCount).sorted() }
        result.yield(measurement)
    }

    /// Nothing can be measured any more; from any thread.
    func fail(_ error: NighError) { result.finish(throwing: error) }

    /// What was measured, once there was enough of it.
    var measurement: Measurement {
        get async throws {
            guard let measurement = try await results.first(where: { _ in true }) else {
                throw NighError(.conversing, .closed)
            }
            return measurement
        }
    }

    /// A round trip begins.
    @inline(__always)
    func departed() { sentAt = Self.clock() }

    /// A round trip is complete.
    @inline(__always)
    func returned() {
        samples[sampleCount & (Self.samplesKept &- 1)] = UInt32(clamping: Self.clock() &- sentAt)
        sampleCount &+= 1
        count()
    }

    private static func clock(_ kind: clockid_t = CLOCK_MONOTONIC) -> Int64 {
        var time = timespec()
        clock_gettime(kind, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
