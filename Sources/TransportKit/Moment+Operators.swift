import NighCore

// Swift finds the operators of a type only where the module that declares them is imported as a whole. Authors of
// transports import `NighTransport` alone, so it declares them again. `@_disfavoredOverload`: code that imports both
// uses NighCore's. `@_alwaysEmitIntoClient`: a plugin contains them, since the program that loads it has no
// NighTransport.

extension Moment {
    /// Returns the moment `span` later. Saturates instead of overflowing.
    @_alwaysEmitIntoClient @_disfavoredOverload
    public static func + (moment: Moment, span: Span) -> Moment { moment.advanced(by: span) }

    /// Returns the time from `right` to `left`. Saturates instead of overflowing.
    @_alwaysEmitIntoClient @_disfavoredOverload
    public static func - (left: Moment, right: Moment) -> Span { left.elapsed(since: right) }
}

extension Moment.Span {
    /// Returns the sum of two spans. Saturates instead of overflowing.
    @_alwaysEmitIntoClient @_disfavoredOverload
    public static func + (left: Moment.Span, right: Moment.Span) -> Moment.Span { left.adding(right) }
}
