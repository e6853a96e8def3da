import NighCore
import NighTestKit

/// The events of a world, in order: always as a hash and, if requested, as lines of text.
///
/// Two runs of one seed must give the same hash. A run with lines costs many times as much as one without.
struct WorldLog {
    private(set) var lines: [String] = []
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    let keepsLines: Bool

    init(keepsLines: Bool) { self.keepsLines = keepsLines }

    /// Logs an event. The hash takes in `moment`, `kind`, `first` and `second`; the line of text has `moment`,
    /// `subject` and `text`.
    mutating func note(
        at moment: Moment, _ subject: @autoclosure () -> String, _ kind: Kind, _ first: Int = 0,
        _ second: Int = 0,
        _ text: @autoclosure () -> String
    ) {
        mix(UInt64(bitPattern: moment.nanoseconds))
        mix(kind.rawValue)
        mix(UInt64(bitPattern: Int64(first)))
        mix(UInt64(bitPattern: Int64(second)))
        guard keepsLines else { return }
        lines.append("\(Self.time(moment))  \(subject()): \(text())")
    }

    private mutating func mix(_ value: UInt64) {
        hash = (hash ^ value) &* 0x0000_0100_0000_01b3
        hash ^= hash >> 29
    }

    private static func time(_ moment: Moment) -> String {
        let microseconds = moment.nanoseconds / 1_000
        let rest = "\(1_000_000 + microseconds % 1_000_000)".dropFirst()
        return "\(microseconds / 1_000_000).\(rest)"
    }

    /// The kind of an event; part of the hash.
    enum Kind: UInt64 {
        case phase = 1
        case fault, run, call, outcome, sent, received, state, invitation, event
    }
}
