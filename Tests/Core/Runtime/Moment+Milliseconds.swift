@testable import NighCore

extension Moment {
    /// The moment this many milliseconds after the beginning of a test.
    static func at(_ milliseconds: Int64) -> Moment { Moment(nanoseconds: 0) + .milliseconds(milliseconds) }
}
