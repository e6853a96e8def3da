import NighCore

extension Duration {
    /// In milliseconds, to the microsecond.
    var milliseconds: Double { (Moment.Span(self)).milliseconds }

    /// In seconds, to the microsecond.
    var seconds: Double { milliseconds / 1_000 }
}

extension Moment.Span {
    /// In milliseconds, to the microsecond.
    var milliseconds: Double { Double(nanoseconds / 1_000) / 1_000 }
}
