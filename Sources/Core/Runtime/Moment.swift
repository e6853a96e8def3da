/// A point on an event loop's own clock: nanoseconds since an origin only that clock knows.
///
/// Moments of different clocks cannot be compared in any useful way. Core never reads a clock; it is handed moments.
@frozen
public struct Moment: Comparable, Hashable, Sendable, CustomStringConvertible {
    /// Nanoseconds since the clock's origin.
    public var nanoseconds: Int64

    /// A moment `nanoseconds` after the clock's origin.
    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Later than every moment a clock will show; "no deadline".
    public static let never = Moment(nanoseconds: .max)

    /// Whether `left` comes first.
    @inlinable
    public static func < (left: Moment, right: Moment) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The moment `span` later; saturates at ``never``, or at the earliest moment there is, instead of overflowing.
    @inlinable
    public static func + (moment: Moment, span: Span) -> Moment {
        let (sum, overflow) = moment.nanoseconds.addingReportingOverflow(span.nanoseconds)
        guard overflow else { return Moment(nanoseconds: sum) }
        return span.nanoseconds > 0 ? .never : Moment(nanoseconds: .min)
    }

    /// The time from `right` to `left`, saturating.
    @inlinable
    public static func - (left: Moment, right: Moment) -> Span {
        let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(right.nanoseconds)
        guard overflow else { return Span(nanoseconds: difference) }
        return Span(nanoseconds: left < right ? .min : .max)
    }

    /// The time since the clock's origin, rounded down to a unit people read.
    public var description: String {
        self == .never ? "never" : Span(nanoseconds: nanoseconds).description
    }

    /// A length of time in whole nanoseconds: what the machines calculate with, since `Duration` is 128 bits wide.
    @frozen
    public struct Span: Comparable, Hashable, Sendable, CustomStringConvertible {
        /// The length in nanoseconds; may be negative.
        public var nanoseconds: Int64

        /// A span of this many nanoseconds.
        @inlinable
        public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

        /// The span nearest to `duration`, clamped to what 64 bits of nanoseconds hold (292 years).
        public init(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            let (whole, tooLarge) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
            let (sum, overflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
            nanoseconds = tooLarge || overflow ? (seconds < 0 ? .min : .max) : sum
        }

        /// No time at all.
        public static let zero = Span(nanoseconds: 0)

        /// `count` milliseconds, saturating.
        @inlinable
        public static func milliseconds(_ count: Int64) -> Span { Span(count, unit: 1_000_000) }

        /// `count` seconds, saturating.
        @inlinable
        public static func seconds(_ count: Int64) -> Span { Span(count, unit: 1_000_000_000) }

        @inlinable
        init(_ count: Int64, unit: Int64) {
            let (product, overflow) = count.multipliedReportingOverflow(by: unit)
            nanoseconds = overflow ? (count < 0 ? .min : .max) : product
        }

        /// The same length as a standard library `Duration`.
        public var duration: Duration { .nanoseconds(nanoseconds) }

        /// Whether `left` is shorter.
        @inlinable
        public static func < (left: Span, right: Span) -> Bool { left.nanoseconds < right.nanoseconds }

        /// Sum of two spans, saturating.
        @inlinable
        public static func + (left: Span, right: Span) -> Span {
            let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.nanoseconds)
            return Span(nanoseconds: overflow ? (left.nanoseconds < 0 ? .min : .max) : sum)
        }

        /// The length, rounded down to a unit people read.
        public var description: String {
            switch nanoseconds.magnitude {
            case 0..<1_000: "\(nanoseconds) ns"
            case 1_000..<1_000_000: "\(nanoseconds / 1_000) µs"
            case 1_000_000..<10_000_000_000: "\(nanoseconds / 1_000_000) ms"
            default: "\(nanoseconds / 1_000_000_000) s"
            }
        }
    }
}
