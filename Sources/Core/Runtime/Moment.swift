/// A point in time on an event loop's clock, in nanoseconds since an origin that only the clock knows.
///
/// Comparing moments of different clocks has no meaning. Machines never read a clock; they get moments as arguments.
@frozen
public struct Moment: Comparable, Hashable, Sendable, CustomStringConvertible {
    /// Nanoseconds since the clock's origin.
    public var nanoseconds: Int64

    /// Creates the moment `nanoseconds` after the clock's origin.
    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A moment later than any that a clock shows, used for "no deadline".
    public static let never = Moment(nanoseconds: .max)

    /// Returns whether `left` is earlier.
    @inlinable
    public static func < (left: Moment, right: Moment) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Returns the moment `span` later. Instead of overflowing, the result is
    /// ``never`` or the earliest moment there is.
    @inlinable
    public static func + (moment: Moment, span: Span) -> Moment { moment.advanced(by: span) }

    /// Returns the moment `span` later, as `+` does.
    @inlinable
    public func advanced(by span: Span) -> Moment {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(span.nanoseconds)
        guard overflow else { return Moment(nanoseconds: sum) }
        return span.nanoseconds > 0 ? .never : Moment(nanoseconds: .min)
    }

    /// Returns the time from `right` to `left`. Saturates instead of overflowing.
    @inlinable
    public static func - (left: Moment, right: Moment) -> Span { left.elapsed(since: right) }

    /// Returns the time since `earlier`, as `-` does.
    @inlinable
    public func elapsed(since earlier: Moment) -> Span {
        let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
        guard overflow else { return Span(nanoseconds: difference) }
        return Span(nanoseconds: self < earlier ? .min : .max)
    }

    /// The time since the clock's origin, rounded down to a readable unit.
    public var description: String {
        self == .never ? "never" : Span(nanoseconds: nanoseconds).description
    }

    /// A length of time in whole nanoseconds. Machines calculate with it because `Duration` is 128 bits wide.
    @frozen
    public struct Span: Comparable, Hashable, Sendable, CustomStringConvertible {
        /// The length in nanoseconds. It may be negative.
        public var nanoseconds: Int64

        /// Creates a span of this many nanoseconds.
        @inlinable
        public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

        /// Creates a span of `duration`, without fractions of a nanosecond, limited to what 64 bits
        /// of nanoseconds can hold (292 years).
        public init(_ duration: Duration) {
            nanoseconds = Int64(clamping: duration.attoseconds / 1_000_000_000)
        }

        /// A span of zero length.
        public static let zero = Span(nanoseconds: 0)

        /// Returns a span of `count` milliseconds. Saturates instead of overflowing.
        @inlinable
        public static func milliseconds(_ count: Int64) -> Span { Span(count, unit: 1_000_000) }

        /// Returns a span of `count` seconds. Saturates instead of overflowing.
        @inlinable
        public static func seconds(_ count: Int64) -> Span { Span(count, unit: 1_000_000_000) }

        @inlinable
        init(_ count: Int64, unit: Int64) {
            let (product, overflow) = count.multipliedReportingOverflow(by: unit)
            nanoseconds = overflow ? (count < 0 ? .min : .max) : product
        }

        /// The length as a standard library `Duration`.
        public var duration: Duration { .nanoseconds(nanoseconds) }

        /// Returns whether `left` is shorter.
        @inlinable
        public static func < (left: Span, right: Span) -> Bool { left.nanoseconds < right.nanoseconds }

        /// Returns the sum of two spans. Saturates instead of overflowing.
        @inlinable
        public static func + (left: Span, right: Span) -> Span { left.adding(right) }

        /// Returns the sum of this span and another, as `+` does.
        @inlinable
        public func adding(_ other: Span) -> Span {
            let (sum, overflow) = nanoseconds.addingReportingOverflow(other.nanoseconds)
            return Span(nanoseconds: overflow ? (nanoseconds < 0 ? .min : .max) : sum)
        }

        /// The length, rounded down to a readable unit.
        public var description: String {
            switch nanoseconds.magnitude {
            case 0..<1_000: "\(nanoseconds) ns"
            case 1_000..<1_000_000: "\(nanoseconds / 1_000) µs"
            case 1_000_000..<1_000_000_000: "\(nanoseconds / 1_000_000) ms"
            case 1_000_000_000..<10_000_000_000 where nanoseconds / 100_000_000 % 10 != 0:
                "\(nanoseconds / 1_000_000_000).\((nanoseconds / 100_000_000 % 10).magnitude) s"
            default: "\(nanoseconds / 1_000_000_000) s"
            }
        }
    }
}
