import CAllocationCounter
import Glibc
import NighCore

/// The result of one scenario.
struct Measurement {
    /// The messages that arrived, or the round trips if those are measured.
    var messages: Int
    var nanoseconds: Int64
    /// The processor time of all threads of the process meanwhile. It is steadier than the time when others use the
    /// machine.
    var processorNanoseconds: Int64
    /// The blocks that the whole process took from the heap meanwhile.
    var allocations: UInt64
    /// The nanoseconds of each round trip, in ascending order; empty if round trips are not measured.
    var roundTrips: [UInt32] = []

    var perSecond: Double { Double(messages) * 1e9 / Double(nanoseconds) }

    func perMessage(_ total: some BinaryInteger) -> Double { Double(total) / Double(messages) }

    /// Returns a percentile in microseconds; nil if round trips were not measured.
    func percentile(_ percent: Int) -> Double? {
        roundTrips.isEmpty ? nil : Double(roundTrips[roundTrips.count * percent / 100]) / 1_000
    }
}

/// Counts messages on the loop that receives them: through a warm-up, then until there are enough.
///
/// Every `step` messages it calls `onStep`, with which a receiver starts the next burst. `@unchecked Sendable`: once
/// the scenario has begun, only the receiver's loop touches the variables.
final class Meter: @unchecked Sendable {
    enum Until {
        case nanoseconds(Int64)
        case messages(Int)
    }

    /// The most round trips that are kept; further ones overwrite the oldest.
    private static let samplesKept = 1 << 20

    private let step: Int
    private let warmUp: Int
    private let until: Until
    private let (results, result) = AsyncThrowingStream.makeStream(of: Measurement.self)
    private var onStep: @Sendable () -> Void = {}

    // Confined to one loop, and touched for each message. Anywhere else, the check for overlapping access is worth its
    // cost; here it would be part of the measurement.
    private(set) var isDone = false
    private var received = 0
    private var nextStep: Int
    private var startedAt: Int64?
    private var processorAtStart: Int64 = 0
    private var allocationsAtStart: UInt64 = 0
    private var receivedAtStart = 0
    @exclusivity(unchecked) private var samples: [UInt32] = []
    private var sampleCount = 0
    private var sentAt: Int64 = 0

    init(step: Int, warmUp: Int, until: Until, timesRoundTrips: Bool = false) {
        self.step = step
        self.warmUp = warmUp
        self.until = until
        nextStep = step
        if timesRoundTrips { samples = Array(repeating: 0, count: Self.samplesKept) }
    }

    /// Sets the handler that is called every `step` messages. Must be called before the first message.
    func onEachStep(_ onStep: @escaping @Sendable () -> Void) { self.onStep = onStep }

    /// Counts a message that has arrived.
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

    /// Ends the measurement with an error. May be called from any thread.
    func fail(_ error: NighError) { result.finish(throwing: error) }

    /// The measurement, as soon as there are enough messages.
    var measurement: Measurement {
        get async throws {
            guard let measurement = try await results.first(where: { _ in true }) else {
                throw NighError(.conversing, .closed)
            }
            return measurement
        }
    }

    /// Marks the beginning of a round trip.
    @inline(__always)
    func roundTripBegan() { sentAt = Self.clock() }

    /// Records a completed round trip.
    @inline(__always)
    func roundTripEnded() {
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
