import NighCore

extension Duration {
    /// The duration in milliseconds, to the microsecond.
    var milliseconds: Double { (Moment.Span(self)).milliseconds }

    /// The duration in seconds, to the microsecond.
    var seconds: Double { milliseconds / 1_000 }
}

extension Moment.Span {
    /// The span in milliseconds, to the microsecond.
    var milliseconds: Double { Double(nanoseconds / 1_000) / 1_000 }
}
